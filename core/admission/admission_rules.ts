/**
 * Where the rules for objects are enforced, and why there.
 *
 * @module
 */
import type { AdmissionRule } from "../api/admission_rule.ts";
import { kindText } from "../api/kind.ts";
import { type DefinedKind, isDefinedKind } from "../crd/kind_definition.ts";
import type { AdmissionPolicy } from "../crd/policies.ts";
import type { OpenApiSchema } from "../patch/schema.ts";
import type { Admission, AdmissionHandlers } from "./admission_options.ts";

/** Keywords of schemas that demand something of a value. */
const DEMANDS: readonly string[] = [
  "enum",
  "pattern",
  "format",
  "minimum",
  "exclusiveMinimum",
  "maximum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minProperties",
  "maxProperties",
  "oneOf",
  "anyOf",
  "not",
];

/** Maximum length of a value or an expression in the text of a rule, in characters. */
const MAX_TEXT = 80;

const SCHEMA_WHY =
  "it concerns the value of one field, which the API server checks itself";
const DEFAULT_WHY = "it is constant, and the API server fills it in itself";
const RULE_WHY =
  "it compares values, which a schema cannot; the API server evaluates it";
const CODE_WHY =
  "it is code of the schema, which no server runs: write a CEL rule, or admit the kind with validate()";
const TRANSITION_WHY =
  "it compares with the stored object, which a schema cannot; the API server evaluates it";

/** Rules of the definition of a kind, in all of its versions. */
export function definitionRules(kind: DefinedKind): readonly AdmissionRule[] {
  return kind.versions.flatMap(({ name, schema }) => {
    const text = kindText({ ...kind, version: name });
    const rules: AdmissionRule[] = [];
    addFieldRules(
      schema.openAPIV3Schema,
      "",
      (rule) => rules.push({ kind: text, ...rule }),
    );
    for (const path of kind.checkedInCode?.[name] ?? []) {
      const rule = `${path}: a check in code, such as refine()`;
      rules.push({ kind: text, rule, place: "nowhere", why: CODE_WHY });
    }
    return rules;
  });
}

type AddRule = (rule: Omit<AdmissionRule, "kind">) => void;

function addFieldRules(schema: OpenApiSchema, path: string, add: AddRule) {
  const field = path === "" ? "the object" : path;
  const demands = DEMANDS.filter((keyword) => schema[keyword] !== undefined)
    .map((keyword) => `${keyword} ${short(JSON.stringify(schema[keyword]))}`);
  if (demands.length > 0) {
    const rule = `${field}: ${demands.join(", ")}`;
    add({ rule, place: "schema", why: SCHEMA_WHY });
  }
  if (schema.default !== undefined) {
    const rule = `${field}: default ${short(JSON.stringify(schema.default))}`;
    add({ rule, place: "schema", why: DEFAULT_WHY });
  }
  const expressions = schema["x-kubernetes-validations"];
  for (const { rule } of Array.isArray(expressions) ? expressions : []) {
    add({
      rule: `${field}: ${short(String(rule))}`,
      place: "CEL rule",
      why: /\boldSelf\b/.test(String(rule)) ? TRANSITION_WHY : RULE_WHY,
    });
  }
  for (const name of schema.required ?? []) {
    const rule = `${path === "" ? name : `${path}.${name}`}: required`;
    add({ rule, place: "schema", why: SCHEMA_WHY });
  }
  for (const [name, value] of Object.entries(schema.properties ?? {})) {
    addFieldRules(value, path === "" ? name : `${path}.${name}`, add);
  }
  const { items, additionalProperties: values } = schema;
  if (items !== undefined) addFieldRules(items, `${path}[]`, add);
  if (typeof values === "object") addFieldRules(values, `${path}.*`, add);
}

function short(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT - 1)}…`;
}

/** What the expressions of a policy read that the rules of a definition cannot. */
const READS: readonly (readonly [pattern: RegExp, what: string])[] = [
  [/(?<![\w.])params\b/, "other objects"],
  [/(?<![\w.])(?:request|authorizer)\b/, "the request and its user"],
  [/(?<![\w.])namespaceObject\b/, "the namespace"],
];

/** Rule that a policy enforces. */
export function policyRule(
  { kind, since, policy }: Pick<AdmissionPolicy, "since" | "policy"> & {
    readonly kind: AdmissionPolicy["kind"];
  },
): AdmissionRule {
  const text = JSON.stringify(policy.spec);
  const read = READS.filter(([pattern]) => pattern.test(text))
    .map(([, what]) => what);
  const reason = !isDefinedKind(kind)
    ? "the definition of its kind is not the operator's"
    : read.length > 0
    ? `it reads ${read.join(" and ")}, which a rule of the definition cannot`
    : policy.kind === "MutatingAdmissionPolicy"
    ? "it computes a value, which a default of the schema cannot"
    : "you have chosen a policy, though a rule of the definition would do";
  return {
    kind: kindText(kind),
    rule: `${policy.kind} ${policy.metadata.name}`,
    place: "policy",
    why: `${reason}; from Kubernetes ${since} on`,
  };
}

const HANDLER_WHY: Readonly<Record<keyof AdmissionHandlers, string>> = {
  validate:
    "it is code; what CEL can say would hold as a rule or a policy also while the operator is away",
  default: "it is code; a constant default belongs to the schema",
};

/**
 * Rules of an admission: of its policy, and of the handlers.
 *
 * @param isInForce Whether the API server enforces the policy; undefined if that is
 * not known yet.
 */
export function admissionRules(
  { kind, handlers, policy }: Admission,
  isInForce: boolean | undefined,
): readonly AdmissionRule[] {
  const names = Object.keys(handlers) as (keyof AdmissionHandlers)[];
  if (policy === undefined) {
    return names.map((name) => ({
      kind: kindText(kind),
      rule: `${name}()`,
      place: "webhook",
      why: HANDLER_WHY[name],
    }));
  }
  const rule = policyRule(policy);
  const [stands] = names;
  if (isInForce !== false) {
    const before = stands && `; before it ${stands}() of a webhook`;
    return [{ ...rule, why: `${rule.why}${before ?? ""}` }];
  }
  return stands === undefined
    ? [{ ...rule, why: `${rule.why}: the API server lacks it` }]
    : [{
      ...rule,
      place: "webhook",
      why:
        `the API server lacks its policies, which exist from Kubernetes ${policy.since} on`,
    }];
}
