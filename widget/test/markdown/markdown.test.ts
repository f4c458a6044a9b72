import { describe, expect, test } from "vitest";
import { type MarkdownOptions, renderMarkdown } from "../../src/markdown/markdown";

function html(text: string, options: MarkdownOptions = {}): string {
  const box = document.createElement("div");
  box.append(renderMarkdown(text, options));
  return box.innerHTML.replace(/ (dir|tabindex|data-tex)="[^"]*"/g, "");
}
const cite = (number: number, time: number): Node => Object.assign(document.createElement("sup"), { textContent: `${number}/${time}` });

describe("what books write", () => {
  test.each([
    ["a paragraph", "One\ntwo.\n\nThree.", "<p>One\ntwo.</p><p>Three.</p>"],
    [
      "emphasis",
      "*a* **b** ***c*** _d_ __e__ ~~f~~",
      "<p><em>a</em> <strong>b</strong> <em><strong>c</strong></em> <em>d</em> <strong>e</strong> <del>f</del></p>",
    ],
    ["emphasis within emphasis", "**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"],
    ["ends that meet", "**a *b***", "<p><strong>a <em>b</em></strong></p>"],
    ["stars that are no emphasis", "2 * 3 * 4 and a*", "<p>2 * 3 * 4 and a*</p>"],
    ["names with underscores", "snake_case_name and __init__.py", "<p>snake_case_name and <strong>init</strong>.py</p>"],
    ["code", "`a*b*[1]` and ``x`y``", "<p><code>a*b*[1]</code> and <code>x`y</code></p>"],
    ["a backtick alone", "a ` b", "<p>a ` b</p>"],
    ["an escape", "\\*not\\* \\[1\\]", "<p>*not* [1]</p>"],
    ["entities", "&lt;b&gt; &amp;&#65;&#x42; &nope; &#0; &mdash;", "<p>&lt;b&gt; &amp;AB &amp;nope; &amp;#0; —</p>"],
    ["a break", "a  \nb<br>c\\\nd", "<p>a<br>b<br>c<br>d</p>"],
    ["a title", "## Why *feet*? ##", '<p class="title">Why <em>feet</em>?</p>'],
    ["an underlined title", "Feet\n====\n\nx", '<p class="title">Feet</p><p>x</p>'],
    ["a rule", "a\n\n---\n\nb", "<p>a</p><hr><p>b</p>"],
    ["a quotation", "> a\n> b\n\nc", "<blockquote><p>a\nb</p></blockquote><p>c</p>"],
    ["an aside", ":::note Mind\nThe gap.\n:::\nx", '<blockquote><p class="title">Mind</p><p>The gap.</p></blockquote><p>x</p>'],
    ["a list", "- a\n- b\n  more\n\nc", "<ul><li>a</li><li>b\nmore</li></ul><p>c</p>"],
    ["a numbered list that begins at three", "3. c\n4. d", '<ol start="3"><li>c</li><li>d</li></ol>'],
    ["a list in a list", "- a\n  - b\n    1. c\n- d", "<ul><li>a<ul><li>b<ol><li>c</li></ol></li></ul></li><li>d</li></ul>"],
    ["a list behind a line", "Steps:\n1. a\n2. b", "<p>Steps:</p><ol><li>a</li><li>b</li></ol>"],
    ["a number that begins a line", "In the year\n1986. It was", "<p>In the year\n1986. It was</p>"],
    ["a fence", "```py\nx = [1]\n\n# y\n```\nz", "<pre><code>x = [1]\n\n# y</code></pre><p>z</p>"],
    ["a fence that is still open", "```\nx", "<pre><code>x</code></pre>"],
    ["a fence within a fence", "````\n```\nx\n```\n````", "<pre><code>```\nx\n```</code></pre>"],
    ["a fence in a list", "- a\n  ```\n  x\n   y\n  ```", "<ul><li>a<pre><code>x\n y</code></pre></li></ul>"],
    ["indented code", "a\n\n    x\n      y\n\nb", "<p>a</p><pre><code>x\n  y</code></pre><p>b</p>"],
    ["shell variables and prices", "Use $HOME/$USER, $5 and 6$", "<p>Use $HOME/$USER, $5 and 6$</p>"],
    ["a formula between two", "$$x = y$$ so", '<p><span class="formula">x = y</span> so</p>'],
    ["a formula over lines that begin with it", "$$ a = b\n+ c $$\n\nd", '<div class="formula"> a = b\n+ c </div><p>d</p>'],
    ["a formula that never ends", "$$\na\n\nb", "<p>$$\na</p><p>b</p>"],
    ["a formula that is still coming", "So\n$$\na = b", '<p>So</p><div class="formula">a = b</div>'],
    [
      "a formula that a sentence leads to",
      "The law is: $$\nF = ma\n$$\nwhere F is.",
      '<p>The law is: </p><div class="formula">F = ma</div><p>where F is.</p>',
    ],
    ["dollars that are no formula", "$$ is the shell's id.\n\nb", "<p>$$ is the shell's id.</p><p>b</p>"],
    [
      "brackets that Markdown escapes",
      "arr\\[i\\], dp\\[i\\]\\[j+1\\] \\[C++\\] \\[my\\_type\\]",
      "<p>arr[i], dp[i][j+1] [C++] [my_type]</p>",
    ],
    ["a task that Markdown escapes", "- \\[x\\] done", "<ul><li>[x] done</li></ul>"],
    ["a number in escaped brackets of its own", "\\[12\\]", "<p>[12]</p>"],
    ["a caption in escaped brackets", "\\[Figure 3: the robot\nwalks\\]", "<p>[Figure 3: the robot\nwalks]</p>"],
    ["currencies", "prices in US$, C$ and A$.", "<p>prices in US$, C$ and A$.</p>"],
    ["shell words", "${PATH}:${HOME} $(date)-$(hostname)", "<p>${PATH}:${HOME} $(date)-$(hostname)</p>"],
    ["shell words and code", "use $(x) and `$(y)` now", "<p>use $(x) and <code>$(y)</code> now</p>"],
    ["an ordinal", "the $i$th ($\\lambda_i$)", '<p>the <span class="formula">i</span>th (<span class="formula">\\lambda_i</span>)</p>'],
    ["formulas beside a slash", "$\\alpha$/$\\beta$", '<p><span class="formula">\\alpha</span>/<span class="formula">\\beta</span></p>'],
    ["an escaped price", "$5 or 5\\$)", "<p>$5 or 5$)</p>"],
    [
      "numbers as formulas",
      "$10$, $0.5$ and $3x$",
      '<p><span class="formula">10</span>, <span class="formula">0.5</span> and <span class="formula">3x</span></p>',
    ],
    ["a formula in a sentence", "The law $$ F = ma $$ holds", '<p>The law <span class="formula">F = ma</span> holds</p>'],
    ["a formula with its number", "$$ F = ma $$ (1)", '<p><span class="formula">F = ma</span> (1)</p>'],
    [
      "a formula over two lines",
      "so $a +\nb_1$ and \\(a +\nb\\)",
      '<p>so <span class="formula">a +\nb_1</span> and <span class="formula">a +\nb</span></p>',
    ],
    ["a formula with a full stop", "\\[ x = 1 \\],\nwhere", '<div class="formula"> x = 1 </div><p>where</p>'],
    [
      "a formula in a table's head",
      "$$x$$ | b\n---|---\n1 | 2",
      '<div class="table"><table><tr><th><span class="formula">x</span></th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table></div>',
    ],
    ["a shell's test in code", "a\n\n    \\[ -f x \\] && *y*", "<p>a</p><pre><code>\\[ -f x \\] &amp;&amp; *y*</code></pre>"],
    ["an absolute value", "|x| = 3 when |y| is", "<p>|x| = 3 when |y| is</p>"],
    ["a list behind a quotation", "> a\n* b", "<blockquote><p>a</p></blockquote><ul><li>b</li></ul>"],
    ["a title with an anchor", "## Feet {#feet}", '<p class="title">Feet </p>'],
    ["a title that ends in a sharp", "# C#", '<p class="title">C#</p>'],
    ["a formula", "so $k_1, k_2$ and $5 or $6", '<p>so <span class="formula">k_1, k_2</span> and $5 or $6</p>'],
    [
      "a formula that begins with a number",
      "is $9.81 \\text{ m/s}^2$ here",
      '<p>is <span class="formula">9.81 \\text{ m/s}^2</span> here</p>',
    ],
    ["prices", "$5/$6, $5-$10, US$5 and A$7.", "<p>$5/$6, $5-$10, US$5 and A$7.</p>"],
    [
      "a formula as models write it",
      "gains \\(K_p\\) and \\(x\\)",
      '<p>gains <span class="formula">K_p</span> and <span class="formula">x</span></p>',
    ],
    ["brackets that are escaped", "\\(see there\\) \\[12\\]", "<p>(see there) [12]</p>"],
    ["a formula of its own as models write it", "So\n\\[\nx = y\n\\]\nholds.", '<p>So</p><div class="formula">x = y</div><p>holds.</p>'],
    ["a formula of its own on one line", "$$x = y$$", '<div class="formula">x = y</div>'],
    ["an escaped bracket at the front", "\\[sic\\] it is\n\\[ and", "<p>[sic] it is\n[ and</p>"],
    ["a formula of its own", "$$\nx_1 * y_2 *\n$$", '<div class="formula">x_1 * y_2 *</div>'],
    [
      "a table",
      "| a | b |\n|---|:-:|\n| 1 | `x\\|y` |",
      '<div class="table"><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td><code>x|y</code></td></tr></table></div>',
    ],
    [
      "rows without their head",
      "| a | b |\n| c | d |",
      '<div class="table"><table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table></div>',
    ],
    [
      "a table without outer bars",
      "a | b\n--|--\n1 | 2",
      '<div class="table"><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table></div>',
    ],
    [
      "a link",
      '[a *b*](https://a.org/x_(y) "t")',
      '<p><a href="https://a.org/x_(y)" target="_blank" rel="noopener noreferrer">a <em>b</em></a></p>',
    ],
    [
      "an address",
      "see https://a.org/x, or <https://b.org>",
      '<p>see <a href="https://a.org/x" target="_blank" rel="noopener noreferrer">https://a.org/x</a>, or <a href="https://b.org/" target="_blank" rel="noopener noreferrer">https://b.org</a></p>',
    ],
    ["a link within the book", "[next](./next.md#x)", "<p><span>next</span></p>"],
    ["an image", "![a foot](https://a.org/x.png)", '<p><span class="image">a foot</span></p>'],
    [
      "an image in a link",
      "[![a](b.png)](https://a.org/)",
      '<p><a href="https://a.org/" target="_blank" rel="noopener noreferrer"><span class="image">a</span></a></p>',
    ],
    ["HTML", "<b onclick=x>a</b> <!-- c -->", "<p>&lt;b onclick=x&gt;a&lt;/b&gt; &lt;!-- c --&gt;</p>"],
    ["JSX", '<Tabs>\n<Tab label="x">y</Tab>\n</Tabs>', '<p>&lt;Tabs&gt;\n&lt;Tab label="x"&gt;y&lt;/Tab&gt;\n&lt;/Tabs&gt;</p>'],
    [
      "a definition of a link",
      "[1]: https://a.org",
      '<p>[1]: <a href="https://a.org/" target="_blank" rel="noopener noreferrer">https://a.org</a></p>',
    ],
    ["lines that end as on Windows", "a\r\n\r\nb", "<p>a</p><p>b</p>"],
    ["nothing", "", ""],
  ])("%s", (_, text, expected) => expect(html(text)).toBe(expected));
});

describe("citations", () => {
  test("are counted, each time they stand there", () => {
    expect(html("A [1]. B [2][1].", { cite })).toBe("<p>A <sup>1/0</sup>. B <sup>2/0</sup><sup>1/1</sup>.</p>");
  });

  test("are none in code, and none where there is no such source", () => {
    expect(html("`x[1]` [9] [2024]", { cite: (number) => (number === 1 ? cite(number, 0) : null) })).toBe(
      "<p><code>x[1]</code> [9] [2024]</p>",
    );
  });

  test("behind a fence, a table or a formula are shown there", () => {
    expect(html("```\nx\n``` [1]", { cite })).toBe("<pre><code>x</code></pre><p><sup>1/0</sup></p>");
    expect(html("| a | b | [1]", { cite })).toBe('<div class="table"><table><tr><td>a</td><td>b <sup>1/0</sup></td></tr></table></div>');
    expect(html("$$\nx\n$$ [1]", { cite })).toBe('<div class="formula">x</div><p><sup>1/0</sup></p>');
  });

  test("a digit run of any length is shown as it is", () => {
    const long = `[${"1".repeat(5000)}]`;
    expect(html(long, { cite })).toBe(`<p>${long}</p>`);
  });
});

describe("a range", () => {
  const within = (text: string, words: string, kind = "cited"): string => {
    const start = text.indexOf(words);
    return html(text, { ranges: [{ start, end: start + words.length, kind }] });
  };

  test.each([
    ["in a sentence", "One two three.", "two", '<p>One <mark class="cited">two</mark> three.</p>'],
    ["over emphasis", "a **b** c", "a **b**", '<p><mark class="cited">a </mark><strong><mark class="cited">b</mark></strong> c</p>'],
    ["that begins at a list mark", "- one\n- two", "- two", '<ul><li>one</li><li><mark class="cited">two</mark></li></ul>'],
    [
      "over a formula",
      "The gain $K_p$ is.",
      "The gain $K_p$ is.",
      '<p><mark class="cited">The gain </mark><span class="formula"><mark class="cited">K_p</mark></span><mark class="cited"> is.</mark></p>',
    ],
    [
      "that ends in a formula",
      "So $a + b + c$ it.",
      "So $a + b",
      '<p><mark class="cited">So </mark><span class="formula"><mark class="cited">a + b</mark> + c</span> it.</p>',
    ],
    [
      "that begins in code",
      "So `a + b` it.",
      "+ b` it.",
      '<p>So <code>a <mark class="cited">+ b</mark></code><mark class="cited"> it.</mark></p>',
    ],
    ["that begins at a title", "# One\n\ntwo", "# One", '<p class="title"><mark class="cited">One</mark></p><p>two</p>'],
    ["over two paragraphs", "a\n\nb\n\nc", "a\n\nb", '<p><mark class="cited">a</mark></p><p><mark class="cited">b</mark></p><p>c</p>'],
    ["over a fence", "a\n```\nx\n```\nb", "```\nx\n```", '<p>a</p><pre><code><mark class="cited">x</mark></code></pre><p>b</p>'],
    [
      "over a row",
      "| a | b |\n|--|--|\n| c | d |\n",
      "| c | d |",
      '<div class="table"><table><tr><th>a</th><th>b</th></tr><tr><td><mark class="cited">c</mark></td><td><mark class="cited">d</mark></td></tr></table></div>',
    ],
    ["in code", "so `a b c` it", "b", '<p>so <code>a <mark class="cited">b</mark> c</code> it</p>'],
    ["that ends within emphasis", "**Key. Next** x", "**Key.", '<p><strong><mark class="cited">Key.</mark> Next</strong> x</p>'],
  ])("%s", (_, text, words, expected) => expect(within(text, words)).toBe(expected));

  test("may lie within another, and says what stands behind it", () => {
    const renderAfter = (): Node => document.createTextNode("!");
    const ranges = [
      { start: 0, end: 5, kind: "a" },
      { start: 2, end: 3, kind: "b" },
    ];
    expect(html("01234 x", { ranges, renderAfter })).toBe(
      '<p><mark class="a">01</mark><mark class="a b">2</mark>!<mark class="a">34</mark>! x</p>',
    );
  });

  test("cannot be forged by the text itself", () => {
    expect(html("a\uE000b\uE100c", { ranges: [{ start: 0, end: 0, kind: "x" }] })).toBe("<p>a\uFFFDb\uFFFDc</p>");
  });
});

describe("whatever comes", () => {
  const PIECES = [
    "*",
    "_",
    "`",
    "```\n",
    "[",
    "]",
    "(",
    ")",
    "!",
    "<",
    ">",
    "|",
    "\n",
    "\n\n",
    "- ",
    "1. ",
    "# ",
    "> ",
    "$",
    "$$\n",
    "a",
    " ",
    "    ",
    "https://a.org/",
    "&lt;",
    "\\",
    "~~",
    ":::",
    "[1]",
    "é",
    "👣",
    "---\n",
    "|--|\n",
  ];

  test.each(Array.from({ length: 200 }, (_, seed) => seed + 1))("it is shown without fail, growing or whole (seed %i)", (seed) => {
    let turn = seed;
    const random = (most: number): number => (turn = (turn * 48271) % 2147483647) % most;
    const text = Array.from({ length: 40 }, () => PIECES[random(PIECES.length)]!).join("");
    const letters = (value: string): string => value.replace(/[^aé👣]/gu, "").replaceAll("a", "");
    for (let end = 0; end <= text.length; end += 7) renderMarkdown(text.slice(0, end), { cite });
    const start = random(text.length);
    const box = document.createElement("div");
    box.append(renderMarkdown(text, { cite, ranges: [{ start, end: start + random(20), kind: "x" }] }));
    expect(letters(box.textContent)).toBe(letters(text)); // no letter is lost or doubled
    expect(box.querySelector("script,img,iframe,style,object,svg")).toBeNull();
  });

  test.each([
    ["brackets", "[".repeat(50_000)],
    ["links in links", "[a](b ".repeat(10_000)],
    ["stars", "*a ".repeat(30_000)],
    ["stars alone", "*".repeat(50_000)],
    ["backticks", Array.from({ length: 300 }, (_, size) => "`".repeat(size + 1)).join(" ")],
    ["quotes in quotes", "> ".repeat(5_000)],
    ["spaces", " ".repeat(50_000) + "x"],
    ["lists in lists", Array.from({ length: 300 }, (_, depth) => " ".repeat(depth * 2) + "- a").join("\n")],
    ["bars", "|".repeat(20_000)],
    ["dollars", "$a".repeat(30_000)],
    ["spaces in a title", `# a${" ".repeat(50_000)}b`],
    ["a divider that is none", `a|b\n${"-|".repeat(20_000)}x`],
    ["bars and dashes", `|${"- ".repeat(30_000)}`],
    ["angles", "<http://".repeat(10_000)],
    ["underscores", "_a_".repeat(20_000)],
    ["images", "![".repeat(20_000)],
    ["fences", "```\n".repeat(5_001)],
  ])("%s come to an end", { timeout: 30_000 }, (_, text) => {
    const box = document.createElement("div");
    box.append(renderMarkdown(text, { cite }));
    expect(box.childNodes.length).toBeGreaterThan(0); // what grew with the square of these would not get here
  });
});
