/**
 * Each option's default stands once in the code, and its documentation agrees.
 *
 * Defaults are found by their forms: a row of an option table (`name: { …,
 * default: VALUE }`), and a fallback (`name = VALUE` in a pattern, `name ?? VALUE`).
 * They belong to a documented option by the name of the field and the file.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Duration, milliseconds } from "@coracle/operator/client";
import { isDuration } from "../../core/api/duration.ts";
import { projectText, shippedSources } from "./shipped_files.ts";

/** Default of an option, as it stands in a file. */
interface Default {
  readonly name: string;
  readonly value: unknown;
}

/** Literal values: texts, numbers, products of numbers, and empty containers. */
const LITERAL = String
  .raw`"[^"\n]*"|true|false|Infinity|\[\]|\{\}|[\d_.]+(?: (?:\*|<<) [\d_]+)*`;

function literal(text: string): unknown {
  const value: unknown = Function(`return ${text}`)();
  return typeof value === "object" ? JSON.stringify(value) : value;
}

function found(text: string, pattern: string): readonly Default[] {
  return Array.from(
    text.matchAll(new RegExp(pattern, "g")),
    ({ groups = {} }) => ({
      name: groups["name"] as string,
      value: literal(groups["value"] as string),
    }),
  );
}

/** Defaults that the documentation of fields names with `@default`. */
export function documentedDefaults(text: string): readonly Default[] {
  return found(
    text,
    String
      .raw`@default \{(?<value>${LITERAL})\}\n(?:(?!\*/)[^])*\*/\s*(?:readonly )?(?<name>\w+)\?:`,
  );
}

/** Defaults in the code: rows of tables, and fallbacks. */
export function codedDefaults(text: string): readonly Default[] {
  const code = text.replaceAll(/\/\*\*[^]*?\*\//g, "");
  return [
    ...found(
      code,
      String
        .raw`\b(?<name>\w+): \{(?:[^{}]|\{[^{}]*\})*?\bdefault: (?<value>${LITERAL})[,\s}]`,
    ),
    // In patterns of options, and of variables that a pattern renames.
    ...found(
      code,
      String
        .raw`(?:[{,]\s*|\n\s+)(?<name>\w+)(?:: \w+)? = (?<value>${LITERAL})(?=\s*[,}])`,
    ),
    ...found(code, String.raw`\.(?<name>\w+) \?\? (?!"")(?<value>${LITERAL})`),
  ];
}

function isEqual(a: unknown, b: unknown): boolean {
  return inMilliseconds(a) === inMilliseconds(b);
}

/** A duration in milliseconds; any other value as it is. */
function inMilliseconds(value: unknown): unknown {
  return isDuration(value) ? milliseconds(value as Duration) : value;
}

/** What is wrong with the defaults of a file. */
export function faultsOf(text: string): readonly string[] {
  const documented = documentedDefaults(text);
  const coded = codedDefaults(text);
  const faults: string[] = [];
  for (const name of new Set(documented.map((one) => one.name))) {
    const values = documented.filter((one) => one.name === name)
      .map(({ value }) => value);
    const found = coded.filter((one) => one.name === name);
    const wrong = found.filter(({ value }) =>
      !values.some((one) => isEqual(one, value))
    );
    if (wrong.length > 0) {
      faults.push(
        `${name}: documented as ${values}, but ${wrong[0]?.value} in the code`,
      );
    }
    const isTelling = (value: unknown) =>
      Boolean(value) && !/^[[{]/.test(String(value));
    const repeated = found.filter(({ value }) => isTelling(value));
    if (repeated.length > values.length) {
      faults.push(`${name}: its default stands ${repeated.length} times`);
    }
  }
  return faults;
}

test("Each option's default stands once, and its documentation agrees", () => {
  const faults: string[] = [];
  let checked = 0;
  for (const file of shippedSources()) {
    const text = projectText(file);
    const names = new Set(codedDefaults(text).map(({ name }) => name));
    checked += documentedDefaults(text).filter(({ name }) => names.has(name))
      .length;
    faults.push(...faultsOf(text).map((fault) => `${file}: ${fault}`));
  }
  assert.deepEqual(faults, []);
  assert.ok(checked > 80, `only ${checked} defaults were found in the code`);
});

test("A default that differs from its documentation, or is repeated, is found", () => {
  const field = (value: string) =>
    `interface A {\n  /**\n   * Pause.\n   *\n   * @default {${value}}\n   */\n  readonly pause?: Duration | undefined;\n}\n`;
  const cases: readonly (readonly [string, string, RegExp | undefined])[] = [
    [
      '"5s"',
      'const T = { pause: { type: "duration", default: "5s" } };',
      undefined,
    ],
    [
      '"5s"',
      'const T = { pause: { type: "duration", default: "6s" } };',
      /"?6s/,
    ],
    ['"5s"', "const { pause = 5_000 } = options;", undefined],
    ['"5s"', "const { other, pause = 6_000 } = options;", /but 6000 in/],
    ['"5s"', "const { pause: length = 6_000 } = options;", /but 6000 in/],
    ['"5s"', 'f(options.pause ?? "6s");', /but 6s in the code/],
    ["1_048_576", "f(options.pause ?? 1 << 20);", undefined],
    [
      "true",
      "const { pause = false } = options;",
      /documented as true, but false/,
    ],
    ["[]", "const { pause = [] } = a, { pause = [] } = b;", undefined],
    [
      '"5s"',
      'const { pause = "5s" } = options; f(options.pause ?? "5s");',
      /its default stands 2 times/,
    ],
  ];
  for (const [documented, code, fault] of cases) {
    const [one] = faultsOf(field(documented) + code);
    if (fault === undefined) assert.equal(one, undefined, code);
    else assert.match(one ?? "", fault, code);
  }
});
