import assert from "node:assert/strict";
import { test } from "node:test";
import { referencePages } from "../../site/reference.ts";

const location = { filename: "/core/x.ts", line: 3 };
const text = { kind: "keyword", value: "string" };

test("The reference has a page per symbol, with links between them", () => {
  const run = {
    name: "run",
    declarations: [{
      location,
      kind: "function",
      jsDoc: {
        doc: "Runs a {@linkcode Thing} <once>. Again.",
        tags: [{ kind: "param", name: "thing", doc: "What\nruns." }],
      },
      def: {
        params: [{
          kind: "identifier",
          name: "thing",
          optional: true,
          tsType: { kind: "typeRef", value: { typeName: "Thing" } },
        }],
        returnType: { kind: "array", value: text },
      },
    }],
  };
  const thing = {
    name: "Thing",
    declarations: [{
      location,
      kind: "interface",
      jsDoc: { doc: "A thing." },
      def: {
        properties: [{
          name: "name",
          readonly: true,
          optional: true,
          tsType: text,
          jsDoc: {
            doc: "Its name.",
            tags: [{ kind: "default", doc: '{"a"}' }],
          },
        }],
      },
    }],
  };
  const { pages, sections } = referencePages([{
    specifier: "@coracle/operator",
    file: "mod.ts",
    doc: "All.",
    symbols: [run, thing],
  }, {
    specifier: "@coracle/operator/core",
    file: "core/mod.ts",
    doc: "Parts.",
    symbols: [thing],
  }]);
  const page = (path: string) => pages.find((one) => one.path === path)?.text;
  assert.deepEqual(pages.map(({ path }) => path), [
    "reference/operator/index.md",
    "reference/operator/run.md",
    "reference/operator/Thing.md",
    "reference/core/index.md",
    "reference/index.md",
  ]);
  const about = page("reference/operator/run.md") ?? "";
  assert.match(about, /function run\(thing\?: Thing\): string\[\]/);
  assert.match(
    about,
    /a \[`Thing`\]\(\/reference\/operator\/Thing\) &lt;once>/,
  );
  assert.match(about, /- `thing`: What runs\./);
  assert.match(about, /blob\/main\/core\/x\.ts#L4/);
  const member = page("reference/operator/Thing.md") ?? "";
  assert.match(member, /readonly name\?: string/);
  assert.match(member, /Default: `"a"`/);
  assert.match(
    page("reference/core/index.md") ?? "",
    /\[`Thing`\]\(\/reference\/operator\/Thing\) \| interface \| A thing\./,
  );
  assert.deepEqual(sections.map(({ symbols }) => symbols.length), [2, 0]);
});
