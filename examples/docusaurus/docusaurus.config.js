// The example book as a Docusaurus site, with the Citewell widget on every page.
import rehypeKatex from "rehype-katex";
import remarkMath from "remark-math";

const CITEWELL = process.env.CITEWELL_SERVER ?? "http://localhost:8000";

export default {
  title: "Physical AI",
  url: process.env.SITE_URL ?? "http://localhost:3000",
  baseUrl: "/",
  onBrokenLinks: "warn",
  presets: [
    [
      "classic",
      {
        docs: { path: "../robotics-book", routeBasePath: "/", remarkPlugins: [remarkMath], rehypePlugins: [[rehypeKatex, { output: "mathml" }]] },
        blog: false,
        theme: { customCss: "./src/css/widget.css" },
      },
    ],
  ],
  themeConfig: { navbar: { title: "Physical AI" } },

  // This is all it takes. Docusaurus passes the attributes on as they are.
  scripts: [{ src: `${CITEWELL}/widget.js`, async: true, "data-title": "Ask the book" }],
};
