/**
 * Checks of CEL rules that need no compiler: brackets, texts, and the paths of
 * fields after `self` and `oldSelf`. What they cannot judge is left to the API
 * server, and to `coracle crd`, which compiles each rule.
 *
 * @module
 */
import { checkOptions, nearestName, type OptionRules } from "../api/options.ts";
import { isJsonObject, ownValue } from "../patch/json_value.ts";
import type { OpenApiSchema } from "../patch/schema.ts";
import type { ValidationRule } from "./kind_definition.ts";

const RULE_RULES: OptionRules<ValidationRule> = {
  rule: "name",
  message: "string?",
  messageExpression: "string?",
  reason: [
    "FieldValueInvalid",
    "FieldValueForbidden",
    "FieldValueRequired",
    "FieldValueDuplicate",
    undefined,
  ],
  fieldPath: "string?",
  optionalOldSelf: "boolean?",
  twin: "function?",
};

/** Texts, comments and brackets of an expression, and what is between them. */
const TOKEN_REGEXP =
  /([rR]?)("""|'''|"|')|\/\/[^\n]*|[()[\]{}]|[^"'/()[\]{}rR]+|[^]/y;
const CLOSING: Readonly<Record<string, string>> = {
  "(": ")",
  "[": "]",
  "{": "}",
};

/** Variable of an expression, and the fields that follow it without a call. */
const PATH_REGEXP =
  /(?<![\w.?`])([A-Za-z]\w*)((?:\s*\.\??\s*[A-Za-z_]\w*(?![\w(]|\s*\())+)/g;

/** Fields of the metadata that rules can read. */
const METADATA: OpenApiSchema = {
  type: "object",
  properties: { name: { type: "string" }, generateName: { type: "string" } },
};
const TEXT: OpenApiSchema = { type: "string" };

/**
 * Checks the rules of a schema and of all fields in it, and leaves out what a
 * server does not know: twins.
 *
 * @param subject Kind and version, for errors.
 * @throws {TypeError} If a rule is broken, or names a field that does not exist.
 * @throws {RangeError} If a reason does not exist.
 */
export function checkedRules(
  rules: readonly ValidationRule[],
  schema: OpenApiSchema,
  subject: string,
): readonly Omit<ValidationRule, "twin">[] {
  checkFieldRules(schema, subject, "");
  return rules.map((one) => {
    checkOptions(one, RULE_RULES, `a rule of ${subject}`);
    checkRule(one, wholeObject(schema), subject);
    const { twin: _, ...sent } = one;
    return sent;
  });
}

/** Schema with the fields that all objects have. */
export function wholeObject(schema: OpenApiSchema): OpenApiSchema {
  return {
    ...schema,
    properties: {
      ...schema.properties,
      apiVersion: TEXT,
      kind: TEXT,
      metadata: METADATA,
    },
  };
}

function checkFieldRules(
  schema: OpenApiSchema,
  subject: string,
  path: string,
): void {
  const rules = schema["x-kubernetes-validations"];
  if (Array.isArray(rules)) {
    const isObject = schema["x-kubernetes-embedded-resource"] === true;
    for (const one of rules) {
      if (typeof one?.rule !== "string") {
        throw problem(subject, `a rule of ${path} has no text 'rule'`, one);
      }
      checkRule(
        one,
        isObject ? wholeObject(schema) : schema,
        `${subject}, ${path}`,
      );
    }
  }
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    checkFieldRules(field, subject, path === "" ? name : `${path}.${name}`);
  }
  const { items, additionalProperties: values } = schema;
  if (items !== undefined) checkFieldRules(items, subject, `${path}[]`);
  if (isJsonObject(values)) checkFieldRules(values, subject, `${path}.*`);
}

function checkRule(
  { rule, messageExpression, fieldPath, optionalOldSelf }: ValidationRule,
  schema: OpenApiSchema,
  subject: string,
): void {
  const roots = { self: schema, oldSelf: schema };
  checkExpression(rule, roots, subject);
  if (messageExpression) checkExpression(messageExpression, roots, subject);
  if (optionalOldSelf === true && !/\boldSelf\b/.test(rule)) {
    throw problem(
      subject,
      "'optionalOldSelf' is for rules that use oldSelf",
      rule,
    );
  }
  if (fieldPath === undefined || !/^(?:\.[A-Za-z_]\w*)+$/.test(fieldPath)) {
    return; // With brackets: left to the server.
  }
  const names = fieldPath.split(".").slice(1);
  checkSteps(names, schema, { subject, path: `'fieldPath' ${fieldPath}` });
}

/**
 * Checks the brackets and texts of a CEL expression, and the fields that follow its
 * variables.
 *
 * @param roots Schemas of variables by their names; others are not checked.
 * @throws {TypeError} If it is broken, or a field does not exist.
 */
export function checkExpression(
  expression: string,
  roots: Readonly<Record<string, OpenApiSchema>>,
  subject: string,
): void {
  const bare = withoutTexts(expression, subject);
  for (const [path, root = "", steps = ""] of bare.matchAll(PATH_REGEXP)) {
    const schema = ownValue(roots, root);
    if (schema === undefined) continue;
    const names = steps.split(".").slice(1).map((step) =>
      unescaped(step.trim().replace(/^\?\s*/, ""))
    );
    checkSteps(names, schema, { subject, path: path.replaceAll(/\s/g, "") });
  }
}

/**
 * Expression with its texts emptied and its comments removed.
 *
 * @throws {TypeError} If a text has no end, or the brackets do not match.
 */
export function withoutTexts(expression: string, subject: string): string {
  const open: string[] = [];
  let bare = "";
  let at = 0;
  while (at < expression.length) {
    TOKEN_REGEXP.lastIndex = at;
    const [token = "", raw = "", quote] = TOKEN_REGEXP.exec(expression) ?? [];
    at += token.length;
    if (quote !== undefined) {
      const end = endOfText(expression, at, { quote, isRaw: raw !== "" });
      if (end === undefined) {
        throw problem(subject, `a text has no closing ${quote}`, expression);
      }
      at = end;
      bare += '""';
      continue;
    }
    if (token.startsWith("//")) continue;
    bare += token;
    if (token in CLOSING) open.push(CLOSING[token] as string);
    else if (/^[)\]}]$/.test(token) && open.pop() !== token) {
      throw problem(subject, `'${token}' closes nothing`, expression);
    }
  }
  const missing = open.pop();
  if (missing === undefined) return bare;
  throw problem(subject, `'${missing}' is missing`, expression);
}

/** Index after the closing quote of a text; undefined if none exists. */
function endOfText(
  expression: string,
  from: number,
  { quote, isRaw }: { readonly quote: string; readonly isRaw: boolean },
): number | undefined {
  for (let at = from; at < expression.length; at++) {
    if (expression.startsWith(quote, at)) return at + quote.length;
    if (expression[at] === "\\" && !isRaw) at++;
    if (expression[at] === "\n" && quote.length === 1) return undefined;
  }
  return undefined;
}

/** Name of a field of a schema, from its form in CEL. */
function unescaped(name: string): string {
  return name.replaceAll(
    /__(dash|dot|slash|underscores)__/g,
    (_, word: string) =>
      ({ dash: "-", dot: ".", slash: "/", underscores: "__" })[word] ?? "",
  ).replace(/^__([a-z]+)__$/, "$1");
}

/** Checks that a path leads through fields that the schema names. */
function checkSteps(
  names: readonly string[],
  schema: OpenApiSchema,
  { subject, path }: { readonly subject: string; readonly path: string },
): void {
  let node = schema;
  for (const name of names) {
    const { properties = {}, additionalProperties: values } = node;
    const isOpen = node["x-kubernetes-preserve-unknown-fields"] === true ||
      node["x-kubernetes-int-or-string"] === true || node.type === undefined;
    const next = Object.hasOwn(properties, name)
      ? properties[name]
      : isJsonObject(values)
      ? values
      : undefined;
    if (next === undefined) {
      if (isOpen || values === true) return;
      const nearest = nearestName(name, Object.keys(properties));
      throw problem(
        subject,
        `there is no field "${name}" for a rule${
          nearest === undefined ? "" : `, did you mean "${nearest}"?`
        }`,
        path,
      );
    }
    node = next["x-kubernetes-embedded-resource"] === true
      ? wholeObject(next)
      : next;
  }
}

function problem(subject: string, why: string, received: unknown): TypeError {
  return new TypeError(
    `Cannot define the kind ${subject}: ${why}: received ${
      typeof received === "string" ? received : JSON.stringify(received)
    }`,
  );
}
