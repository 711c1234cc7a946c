import { fc } from "./property.ts";

/**
 * JSON texts that may mislead a scanner: any key order, white space, escapes in
 * keys and values, repeated and similar keys, brackets and quotes in strings.
 *
 * @module
 */

const space = fc.constantFrom("", "", "", "", " ", "\n", "\t ", "\r\n");

const LOOK_ALIKES = [
  "type",
  "object",
  "metadata",
  "name",
  "namespace",
  "uid",
  "kind",
  "apiVersion",
  "labels",
  "resourceVersion",
  "items",
  "app.kubernetes.io/name",
  "}}",
  '{"metadata":{"name":"no"}}',
  '"',
  "\\",
  '\\"',
  "]",
  "\u0000\u001f\u007f",
  "é€😀\ud800",
  "__proto__",
  "",
];

const looseText = fc.oneof(
  fc.constantFrom(...LOOK_ALIKES),
  fc.string({ maxLength: 6 }),
  fc.string({ unit: "binary", maxLength: 6 }),
);

/** JSON string of a text with needless escapes. */
export function spelling(text: string): fc.Arbitrary<string> {
  return fc.array(fc.nat(7), { maxLength: 8 }).map((choices) => {
    let json = '"';
    for (let i = 0; i < text.length; i++) {
      const unit = text.charAt(i);
      const choice = choices.length === 0 ? 1 : choices[i % choices.length];
      const code = text.charCodeAt(i).toString(16).padStart(4, "0");
      if (choice === 0) json += `\\u${code.toUpperCase()}`;
      else if (unit === "/" && choice === 2) json += "\\/";
      else json += JSON.stringify(unit).slice(1, -1);
    }
    return `${json}"`;
  });
}

const stringText = looseText.chain(spelling);

/**
 * Keys hold no backslash: once V8 (in Node 24 and Deno 2.9) has parsed an object
 * with a backslash as key, its `JSON.parse` reads an escaped quote as that key
 * where the same keys come before it, and so is no judge there.
 */
const keyText = looseText.filter((text) => !text.includes("\\"))
  .chain(spelling);

const scalarText = fc.oneof(
  stringText,
  fc.constantFrom("true", "false", "null", "0", "-0", "1e5", "-1.5E-7", "12"),
  fc.integer().map(String),
);

interface Member {
  readonly key: fc.Arbitrary<string>;
  readonly value: fc.Arbitrary<string>;
}

/** Object of members in any order, with repetitions. */
export function objectText(
  members: fc.Arbitrary<readonly (readonly [string, string])[]>,
): fc.Arbitrary<string> {
  return fc.tuple(members, fc.array(space, { minLength: 5, maxLength: 5 }))
    .map(([list, [a, b, c, d, e]]) =>
      `{${a}${
        list.map(([key, value]) => `${key}${b}:${c}${value}${d}`).join(`,${e}`)
      }}`
    );
}

const { value: anyText } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: "small", withCrossShrink: true },
    scalarText,
    objectText(fc.array(fc.tuple(keyText, tie("value")), { maxLength: 4 })),
    fc.tuple(fc.array(tie("value"), { maxLength: 4 }), space, space).map(
      ([elements, a, b]) => `[${a}${elements.join(`${b},${a}`)}]`,
    ),
  ),
}));

/** Any JSON text. */
export const jsonText: fc.Arbitrary<string> = anyText;

/** Some of these members, repeated, reordered and mixed with any others. */
function mixed(members: readonly Member[]): fc.Arbitrary<string> {
  const pair = ({ key, value }: Member) => fc.tuple(key, value);
  return objectText(
    fc.tuple(
      fc.array(fc.oneof(...members.map(pair)), { maxLength: 12 }),
      fc.array(fc.tuple(keyText, anyText), { maxLength: 4 }),
    ).chain(([known, others]) =>
      fc.shuffledSubarray([...known, ...others], {
        minLength: known.length + others.length,
      })
    ),
  );
}

const member = (name: string, value: fc.Arbitrary<string>): Member => ({
  key: spelling(name),
  value: fc.oneof(
    { weight: 12, arbitrary: value },
    { weight: 1, arbitrary: fc.constant("null") },
    { weight: 1, arbitrary: anyText },
  ),
});

const stringMap = objectText(
  fc.array(fc.tuple(keyText, stringText), { maxLength: 4 }),
);
const stringList = fc.array(stringText, { maxLength: 3 })
  .map((list) => `[${list.join(",")}]`);
const objectList = fc.array(stringMap, { maxLength: 2 })
  .map((list) => `[${list.join(",")}]`);

const metadataText = mixed([
  ...["name", "namespace", "uid", "resourceVersion", "deletionTimestamp"]
    .map((name) => member(name, stringText)),
  member("generation", fc.nat(99).map(String)),
  member("finalizers", stringList),
  member("labels", stringMap),
  member("annotations", stringMap),
  member("ownerReferences", objectList),
  member("managedFields", objectList),
]);

/** Objects of Kubernetes' shape, and some that miss it. */
export const kubernetesText: fc.Arbitrary<string> = mixed([
  member("metadata", metadataText),
  member("metadata", metadataText),
  member("apiVersion", stringText),
  member("kind", stringText),
  member("spec", anyText),
  member("status", anyText),
]);

const eventType = fc.constantFrom(
  "ADDED",
  "MODIFIED",
  "DELETED",
  "BOOKMARK",
  "ERROR",
).chain(spelling);

/** Watch events, and some texts that miss their shape. */
export const watchEventText: fc.Arbitrary<string> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(
      eventType,
      kubernetesText,
      fc.array(fc.tuple(keyText, anyText), { maxLength: 2 }),
    ).chain(([type, object, others]) =>
      objectText(
        fc.shuffledSubarray<[string, string]>([
          ['"type"', type],
          ['"object"', object],
          ...others,
        ], { minLength: 2 + others.length }),
      )
    ),
  },
  {
    weight: 2,
    arbitrary: mixed([
      member("type", eventType),
      member("object", kubernetesText),
    ]),
  },
);

/** Texts with a few random changes; most are invalid. */
export function damaged(texts: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const change = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    remove: fc.nat(3),
    insert: fc.constantFrom(...'""{}[],:\\ ntf0-\n', "", ""),
  });
  return fc.tuple(
    texts,
    fc.array(change, { minLength: 1, maxLength: 3 }),
    fc.boolean(),
  ).map(([text, changes, truncate]) => {
    for (const { at, remove, insert } of changes) {
      const index = Math.floor(at * text.length);
      text = truncate
        ? text.slice(0, index)
        : text.slice(0, index) + insert + text.slice(index + remove);
    }
    return text;
  });
}
