import { h } from "./elements";

/** A form to enter an API key. */
export function createKeyForm(label: string, submitLabel: string, onSubmit: (key: string) => void): HTMLFormElement {
  const field = h("input", { type: "password", autocomplete: "off", required: true, "aria-label": label, placeholder: "cw_…" });
  const submit = (event: Event): void => {
    event.preventDefault();
    onSubmit(field.value.trim());
  };
  return h("form", { class: "key", on: { submit } }, field, h("button", { type: "submit" }, submitLabel));
}
