import type { OpenApiSchema } from "@coracle/operator/core";
import type { CrdManifest } from "@coracle/operator/crd";

type Version = CrdManifest["spec"]["versions"][number];

/** Page in Markdown about the kinds of definitions: their fields and their rules. */
export function referencePage(definitions: readonly CrdManifest[]): string {
  const parts = definitions.flatMap((definition) => [
    ...aboutKind(definition),
    ...definition.spec.versions.flatMap((version) =>
      aboutVersion(definition, version)
    ),
  ]);
  return `# Reference\n\n${parts.join("\n\n")}\n`;
}

function aboutKind({ spec }: CrdManifest): readonly string[] {
  const { names, scope, group } = spec;
  const short = names.shortNames ?? [];
  return [
    `## ${names.kind}`,
    `${scope === "Cluster" ? "Cluster-scoped" : "Namespaced"}, ` +
    `\`kubectl get ${names.plural}.${group}\`` +
    (short.length > 0
      ? `, short names ${short.map((one) => `\`${one}\``).join(", ")}`
      : "") +
    ".",
  ];
}

function aboutVersion(
  { spec: { group, names } }: CrdManifest,
  version: Version,
): readonly string[] {
  const schema = version.schema?.openAPIV3Schema ?? {};
  const remarks = [
    ...version.storage ? ["stored in this version"] : [],
    ...version.served === false ? ["not served"] : [],
    ...version.deprecated ? ["deprecated"] : [],
  ];
  const rows = [...fieldRows(schema)];
  const rules = [...ruleLines(schema)];
  return [
    `### ${names.kind} ${group}/${version.name}`,
    ...remarks.length > 0 ? [`${capital(remarks.join(", "))}.`] : [],
    ...schema.description === undefined
      ? []
      : [plain(String(schema.description))],
    ...rows.length === 0 ? [] : [
      [
        "| field | type | description |",
        "| --- | --- | --- |",
        ...rows.map((cells) => `| ${cells.map(cell).join(" | ")} |`),
      ].join("\n"),
    ],
    ...rules.length === 0
      ? []
      : ["Rules of the whole object and of its fields:", rules.join("\n")],
  ];
}

/** Fields that every object has. */
const COMMON = ["apiVersion", "kind", "metadata"];

/** Rows of the fields of a schema, and of those below them. */
function* fieldRows(
  schema: OpenApiSchema,
  path = "",
): Generator<readonly string[]> {
  const { properties = {}, required = [], additionalProperties, items } =
    schema;
  for (const [name, field] of Object.entries(properties)) {
    if (path === "" && COMMON.includes(name)) continue;
    const at = path === "" ? name : `${path}.${name}`;
    const isRequired = required.includes(name);
    const text = [
      ...isRequired ? ["Required."] : [],
      ...field.description === undefined
        ? []
        : [plain(String(field.description))],
      ...limitsOf(field),
    ].join(" ");
    yield [`\`${at}\``, typeText(field), text];
    yield* fieldRows(field, at);
  }
  if (items !== undefined) yield* fieldRows(items, `${path}[]`);
  if (typeof additionalProperties === "object") {
    yield* fieldRows(additionalProperties, `${path}.*`);
  }
}

function typeText(schema: OpenApiSchema): string {
  const { type, items, additionalProperties: values, format } = schema;
  if (schema["x-kubernetes-int-or-string"] === true) return "integer or string";
  if (type === "array") return `list of ${typeText(items ?? {})}`;
  if (typeof values === "object") return `map of ${typeText(values)}`;
  return `${type ?? "any"}${format === undefined ? "" : ` (${format})`}`;
}

const LIMITS = [
  ["minimum", "At least"],
  ["maximum", "At most"],
  ["minLength", "Least characters:"],
  ["maxLength", "Most characters:"],
  ["minItems", "Least items:"],
  ["maxItems", "Most items:"],
  ["pattern", "Pattern:"],
] as const;

const EXCLUSIVE: Readonly<Record<string, string>> = {
  minimum: "Above",
  maximum: "Below",
};

/** Sentences about the values of a field. */
function* limitsOf(schema: OpenApiSchema): Generator<string> {
  if (schema.enum !== undefined) {
    yield `One of ${schema.enum.map((one) => code(one)).join(", ")}.`;
  }
  if (schema.default !== undefined) yield `Default: ${code(schema.default)}.`;
  for (const [keyword, text] of LIMITS) {
    const value = schema[keyword];
    if (value === undefined) continue;
    const isExclusive = schema[`exclusive${capital(keyword)}`] === true;
    yield `${isExclusive ? EXCLUSIVE[keyword] : text} ${code(value)}.`;
  }
  if (schema.nullable === true) yield "May be null.";
}

/** Lines about the CEL rules of a schema, and of those below it. */
function* ruleLines(schema: OpenApiSchema, path = ""): Generator<string> {
  const rules = schema["x-kubernetes-validations"] ?? [];
  for (const { rule, message } of rules as readonly Rule[]) {
    const place = path === "" ? "" : `\`${path}\`: `;
    yield `- ${place}${code(rule)}${
      message === undefined ? "" : `: ${plain(message)}`
    }`;
  }
  const { properties = {}, items, additionalProperties } = schema;
  for (const [name, field] of Object.entries(properties)) {
    yield* ruleLines(field, path === "" ? name : `${path}.${name}`);
  }
  if (items !== undefined) yield* ruleLines(items, `${path}[]`);
  if (typeof additionalProperties === "object") {
    yield* ruleLines(additionalProperties, `${path}.*`);
  }
}

interface Rule {
  readonly rule: string;
  readonly message?: string | undefined;
}

/** A value as code; a text that has a backtick is put between two. */
function code(value: unknown): string {
  const text = typeof value === "string"
    ? value.replaceAll(/\s+/g, " ").trim() || '""'
    : JSON.stringify(value);
  return text.includes("`") ? `\`\` ${text} \`\`` : `\`${text}\``;
}

/** A text on one line, escaped for HTML. */
function plain(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim().replaceAll("<", "&lt;");
}

/** A text as a cell of a table. */
function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
