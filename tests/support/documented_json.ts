import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

/** Guides that have a table of the JSON of a command. */
type Guide = "plan" | "replay";

const ROW = /^\| (the \w+|`[\w.[\]]+`) +\| ((?:`\w+(?:\[\])?\??`,? )+) *\|/gm;

/**
 * Paths of the fields of the JSON that a guide describes, such as
 * `changes[].fields[].path`; those that may be absent end with `?`.
 */
export function documentedFields(guide: Guide): readonly string[] {
  const url = new URL(`../../docs/${guide}.md`, import.meta.url);
  return [...readFileSync(url, "utf8").matchAll(ROW)].flatMap(
    ([, object = "", fields = ""]) => {
      const path = object.startsWith("the ") ? "" : `${object.slice(1, -1)}.`;
      return fields.split(",").map((field) =>
        path + field.trim().slice(1, -1).replace("[]", "")
      );
    },
  );
}

/** Asserts that JSON has each field that must be there, and no undocumented one. */
export function assertDocumented(json: unknown, guide: Guide): void {
  const documented = documentedFields(guide);
  const faults = new Set<string>();
  const visit = (value: unknown, path: string): void => {
    if (Array.isArray(value)) {
      return value.forEach((one) => visit(one, `${path}[]`));
    }
    const prefix = path === "" ? "" : `${path}.`;
    // What was only the older version's has the form of what changes.
    const own = documented.flatMap((field) => {
      const start = prefix.replace(/^dropped\[\]/, "changes[]");
      const rest = field.startsWith(start) ? field.slice(start.length) : "";
      return rest === "" || rest.includes(".") ? [] : [rest];
    });
    // Values of fields of objects may be anything.
    if (own.length === 0) return;
    const given = Object.entries(value as object);
    for (const [name, part] of given) {
      if (!own.some((field) => field.replace("?", "") === name)) {
        faults.add(`undocumented: ${prefix}${name}`);
      }
      visit(part, prefix + name);
    }
    for (const field of own) {
      const isThere = field.endsWith("?") ||
        given.some(([name]) => name === field);
      if (!isThere) faults.add(`missing: ${prefix}${field}`);
    }
  };
  visit(json, "");
  assert.deepEqual([...faults], []);
}
