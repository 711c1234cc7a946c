import assert from "node:assert/strict";
import { test } from "node:test";
import { indexed, pageOf, siteLink, summaryOf } from "../../site/pages.ts";

const read = (file: string) => `// ${file}\n`;

test("A link between guides becomes a link of the site, others lead to GitHub", () => {
  const github = "https://github.com/coracle-dev/operator/blob/main";
  for (
    const [file, href, expected] of [
      ["docs/status.md", "conditions.md", "/guides/conditions"],
      ["docs/README.md", "from-client-node.md", "/migrate/client-node"],
      ["docs/tutorial/README.md", "../test.md", "/guides/test"],
      ["docs/test.md", "tutorial/README.md", "/tutorial/"],
      ["docs/performance.md", "../ARCHITECTURE.md", "/concepts/architecture"],
      ["docs/performance.md", "../bench/charts/a.svg", "/pictures/a.svg"],
      ["docs/window.md", "window.png", "/pictures/window.png"],
      ["docs/test.md", "../examples/x.ts", `${github}/examples/x.ts`],
    ] as const
  ) assert.equal(siteLink(file, href), expected);
});

test("A page names the file that a block shows, and leaves code as it is", () => {
  const page = pageOf(
    "docs/test.md",
    "# T\n\n[a](status.md#b)\n\n```ts file=examples/x.ts\n[b](c.md)\n```\n\n" +
      "```ts ignore from=examples/y.ts\n```\n\n```sh\n[d](e.md)\n```\n",
    read,
  );
  const github = "https://github.com/coracle-dev/operator/blob/main";
  assert.deepEqual(page, {
    path: "guides/test.md",
    text: "# T\n\n[a](/guides/status#b)\n\n" +
      `[examples/x.ts](${github}/examples/x.ts){.file}\n\n` +
      "```ts\n[b](c.md)\n```\n\n" +
      `[examples/y.ts](${github}/examples/y.ts){.file}\n\n` +
      "```ts\n// examples/y.ts\n```\n\n```sh\n[d](e.md)\n```\n",
  });
  assert.equal(pageOf("tests/README.md", "# T", read), undefined);
});

test("An index gives the pages of its links once, in their order", () => {
  assert.deepEqual(
    indexed("docs/README.md", "[A](b.md) [C](test.md), [again](b.md)"),
    [{ text: "A", link: "/guides/b" }, { text: "C", link: "/guides/test" }],
  );
});

test("The summary of a page is its title and its first paragraph of prose", () => {
  assert.deepEqual(
    summaryOf("# T\n\n```ts\nx\n```\n\nA [b](c)\nd.\n\nE."),
    { title: "T", description: "A b d." },
  );
});
