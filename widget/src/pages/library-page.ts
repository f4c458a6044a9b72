/** The library page, at `/library`. */

import { adoptStyles } from "../dom/stylesheet";
import { Library } from "../library/library";
import style from "../library/library.css?inline";
import formulaStyle from "../markdown/formula.css?inline";

adoptStyles(document, style, formulaStyle);
const library = new Library();
document.body.append(library.element);
void library.refresh();
