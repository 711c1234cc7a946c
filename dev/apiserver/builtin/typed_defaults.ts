import { isJsonObject, type JsonObject } from "@coracle/operator/internal";
import type { Schema } from "../merge/schema.ts";
import { setCrdDefaults } from "../crd/crd_lifecycle.ts";
import { FieldPath } from "../validation/field_path.ts";
import { DEFAULTS_TEXT } from "../validation/rules/rule_data.ts";
import { DEFAULT_FUNCTIONS, defaultLine } from "./defaults/default_words.ts";
import { type GoType, specialForm, structIn } from "./go_types.ts";
import { RuleText } from "../validation/rules/rule_text.ts";
import { Scope } from "../validation/rules/scope.ts";

/** Default rules of all definitions. */
export const TYPED_RULES: RuleText = new RuleText({
  text: DEFAULTS_TEXT,
  compileLine: defaultLine,
  functions: DEFAULT_FUNCTIONS,
});

/** Sets defaults; features that 1.37 enables are off in earlier releases. */
type DefaultRule = (object: JsonObject, isEarlier: boolean) => void;

function ruleOf(definition: string): DefaultRule | undefined {
  if (definition.endsWith(".v1.CustomResourceDefinition")) {
    return setCrdDefaults as unknown as DefaultRule;
  }
  const rule = TYPED_RULES.get(
    definition.replace(/^io\.k8s\.(?:api\.)?/, ""),
  );
  return rule &&
    ((object, isEarlier) =>
      void rule(new Scope(object, NO_PATH).set("$isEarlier", isEarlier)));
}

const NO_PATH: FieldPath = new FieldPath("", []);

/** Defaults of a field. */
interface FieldDefaults {
  readonly name: string;
  /** Default value in the schema, if any. */
  readonly default?: unknown;
  /** Defaults of the structs in the field, if they have any. */
  readonly structs?: TypeDefaults | undefined;
}

/** Defaults of a struct. */
interface TypeDefaults {
  readonly rule: DefaultRule | undefined;
  readonly fields: readonly FieldDefaults[];
  /** Whether the struct, or a struct in it, has defaults. */
  readonly matters: boolean;
}

const DEFAULTS: Map<string, TypeDefaults> = new Map();
const NOTHING: TypeDefaults = { rule: undefined, fields: [], matters: false };

function defaultsOf(type: GoType): TypeDefaults {
  const known = DEFAULTS.get(type.definition);
  if (known) return known;
  // A recursive type gets no defaults in its nested values.
  DEFAULTS.set(type.definition, NOTHING);
  const fields: FieldDefaults[] = [];
  for (const field of type.fields.values()) {
    const struct = structOf(field.schema);
    const defaults = struct && defaultsOf(struct);
    const value = field.schema.default;
    const isPointer = field.presence === "pointer" ||
      field.presence === "nullPointer";
    const matters = value !== undefined && !isJsonObject(value) &&
      (isPointer || Boolean(value));
    if (!matters && !defaults?.matters) continue;
    fields.push({
      name: field.name,
      ...(matters ? { default: value } : {}),
      structs: defaults?.matters ? defaults : undefined,
    });
  }
  const rule = ruleOf(type.definition);
  const matters = rule !== undefined || fields.length > 0;
  const defaults: TypeDefaults = { rule, fields, matters };
  DEFAULTS.set(type.definition, defaults);
  return defaults;
}

/** Struct of a field, directly or as item of a list or map. */
function structOf(schema: Schema): GoType | undefined {
  const { additionalProperties, items } = schema;
  if (specialForm(schema) !== undefined) return undefined;
  if (items) return structOf(items);
  return additionalProperties
    ? structOf(additionalProperties)
    : structIn(schema);
}

/**
 * Sets the defaults of a decoded object, in place, by the rules of its structs
 * and their schemas, outer structs first.
 *
 * @param isEarlier Whether features that 1.37 enables are off.
 */
export function setTypedDefaults(
  type: GoType,
  object: JsonObject,
  isEarlier = false,
): void {
  setIn(defaultsOf(type), object, isEarlier);
}

function setIn(
  defaults: TypeDefaults,
  value: unknown,
  isEarlier: boolean,
): void {
  if (Array.isArray(value)) {
    for (const item of value) setIn(defaults, item, isEarlier);
  } else if (isJsonObject(value)) apply(defaults, value, isEarlier);
}

function apply(
  defaults: TypeDefaults,
  object: JsonObject,
  isEarlier: boolean,
): void {
  defaults.rule?.(object, isEarlier);
  for (const { name, default: value, structs } of defaults.fields) {
    if (value !== undefined) object[name] ??= value;
    if (structs) setIn(structs, object[name], isEarlier);
  }
}
