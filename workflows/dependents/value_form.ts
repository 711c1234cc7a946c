import { apiVersionOf, type Kind } from "../../core/api/kind.ts";
import { crdManifest } from "../../core/crd/crd_manifest.ts";
import { isDefinedKind } from "../../core/crd/kind_definition.ts";
import { VALUE_FORMS } from "../../core/kinds/value_forms.ts";
import { isJsonObject, type JsonObject } from "../../core/patch/json_value.ts";
import { Quantity } from "../../core/api/quantity.ts";

/**
 * Normalization of a value by the server, or by a controller written in Go.
 * `texts` is a map of literal strings, where an empty string is an entry; `atomic`
 * is a value that is owned as a whole.
 */
export type Spelling = "quantity" | "time" | "duration" | "texts" | "atomic";

export interface FieldForm {
  readonly form?: Form | undefined;
  /**
   * Default values that the server sets; an empty list for any value, undefined
   * if it sets none.
   */
  readonly defaults?: readonly unknown[] | undefined;
}

export interface StructForm {
  readonly fields: ReadonlyMap<string, FieldForm>;
  readonly rest?: Form | undefined;
  /** Whether empty values are stored, as in custom resources, unlike Go structs. */
  readonly keepsEmpty?: boolean | undefined;
  /** Whether the fields of the object are owned individually. */
  readonly granular?: boolean | undefined;
}

/**
 * Form of a field and everything below it; lists and maps have the form of
 * their values. Undefined if values need no normalization.
 */
export type Form = Spelling | StructForm;

/** Whether a value is empty, so that the server does not store it. */
export function isEmptyValue(value: unknown, form: Form | undefined): boolean {
  if (value === undefined || value === null) return true;
  if (typeof form === "object" && form.keepsEmpty) return false;
  if (value === "") return form !== "texts" && form !== "atomic";
  if (Array.isArray(value)) return value.length === 0;
  return isJsonObject(value) &&
    Object.entries(value).every(([name, item]) =>
      isEmptyValue(item, formOfField(form, name))
    );
}

/**
 * Whether an object that is applied empty leaves its fields to other owners.
 */
export function isGranular(form: Form | undefined): boolean {
  return form === undefined ||
    (typeof form === "object" && form.granular === true);
}

export function formOfField(
  form: Form | undefined,
  name: string,
): Form | undefined {
  if (typeof form !== "object") return form;
  const field = form.fields.get(name);
  return field === undefined ? form.rest : field.form;
}

/** Whether a value is a default that the server sets. */
function isDefaulted(
  form: Form | undefined,
  name: string,
  value: unknown,
): boolean {
  if (typeof form !== "object") return false;
  const defaults = form.fields.get(name)?.defaults;
  if (defaults === undefined) return false;
  const text = JSON.stringify(value);
  return defaults.length === 0 ||
    defaults.some((known) => JSON.stringify(known) === text);
}

/** Whether the server has replaced an empty value by a default. */
export function isFilled(
  form: Form | undefined,
  name: string,
  value: { readonly desired: unknown; readonly actual: unknown },
): boolean {
  return isEmptyValue(value.desired, formOfField(form, name)) &&
    isDefaulted(form, name, value.actual);
}

/**
 * Determines the form of the objects of a kind: from the API's schema for
 * built-in kinds, from their own schema for kinds of `defineKind`, and from
 * common field names for all others.
 */
export function formOfKind(kind: Kind): StructForm {
  const form = ownFormOf(kind);
  const { fields = [], ...more } = typeof form === "object" ? form : {};
  return { ...more, fields: new Map([...fields, ["metadata", METADATA]]) };
}

function ownFormOf(kind: Kind): Form | undefined {
  if (isDefinedKind(kind)) {
    const { versions } = crdManifest(kind).spec;
    const version = versions.find(({ name }) => name === kind.version);
    return formOfSchema(version?.schema.openAPIV3Schema);
  }
  builtin ??= readBuiltin();
  return builtin.groups.has(kind.group)
    ? builtin.forms.get(`${apiVersionOf(kind)} ${kind.kind}`)
    : COMMON_NAMES;
}

/** Form of the metadata, a Go struct for every kind. */
const METADATA: FieldForm = {
  form: {
    fields: new Map([
      ["annotations", { form: "texts" }],
      ["labels", { form: "texts" }],
    ]),
  },
};

interface BuiltinForms {
  readonly groups: ReadonlySet<string>;
  readonly forms: ReadonlyMap<string, Form>;
}

/** Forms of the built-in kinds; parsed on first use. */
let builtin: BuiltinForms | undefined;

/** Form of a field in `VALUE_FORMS`. */
type FormEntry = Spelling | number | null;

function readBuiltin(): BuiltinForms {
  const { groups, kinds, structs } = JSON.parse(VALUE_FORMS) as {
    readonly groups: readonly string[];
    readonly kinds: Readonly<Record<string, number>>;
    readonly structs: readonly Readonly<
      Record<
        string,
        FormEntry | {
          readonly form: FormEntry;
          readonly filled: readonly unknown[];
        }
      >
    >[];
  };
  const forms = structs.map(() => ({
    fields: new Map<string, FieldForm>(),
    rest: undefined as Form | undefined,
    granular: true,
  }));
  const formOf = (entry: FormEntry) =>
    typeof entry === "number" ? forms[entry] : entry ?? undefined;
  for (const [index, struct] of structs.entries()) {
    for (const [name, entry] of Object.entries(struct)) {
      const field = typeof entry === "object" && entry !== null
        ? { form: formOf(entry.form), defaults: entry.filled }
        : { form: formOf(entry) };
      // A star stands for the values of a map.
      if (name === "*") forms[index]!.rest = field.form;
      else forms[index]!.fields.set(name, field);
    }
  }
  return {
    groups: new Set(groups),
    forms: new Map(
      Object.entries(kinds).map(([name, index]) => [name, forms[index]!]),
    ),
  };
}

/** Part of the pattern of quantities in Kubernetes' own schemas. */
const QUANTITY_PATTERN = "[numkMGTPE]";

/** Determines the form of a structural schema of a custom resource. */
export function formOfSchema(schema: unknown): Form {
  if (!isJsonObject(schema)) return CUSTOM;
  const { format, pattern, items, properties, additionalProperties } = schema;
  if (format === "duration") return "duration";
  if (format === "date-time") return "time";
  if (typeof pattern === "string" && pattern.includes(QUANTITY_PATTERN)) {
    return "quantity";
  }
  if (items !== undefined) return formOfSchema(items);
  const fields = new Map<string, FieldForm>();
  const named = isJsonObject(properties) ? properties : {};
  for (const [name, property] of Object.entries(named)) {
    const value = (property as JsonObject)["default"];
    fields.set(name, {
      form: formOfSchema(property),
      defaults: value === undefined ? undefined : [value],
    });
  }
  return {
    fields,
    rest: formOfSchema(additionalProperties),
    keepsEmpty: true,
    granular: schema["x-kubernetes-map-type"] !== "atomic",
  };
}

/** Form of values without a special form in custom resources. */
const CUSTOM: StructForm = {
  fields: new Map(),
  keepsEmpty: true,
  get rest(): Form {
    return CUSTOM;
  },
};

/**
 * Form for kinds with an unknown schema: the usual names of quantities and
 * defaulted fields in Kubernetes' own types.
 */
const COMMON_NAMES: StructForm = {
  fields: new Map<string, FieldForm>([
    ["capacity", { form: "quantity" }],
    ["divisor", { form: "quantity", defaults: ["0"] }],
    ["limits", { form: "quantity" }],
    ["requests", { form: "quantity" }],
    ["sizeLimit", { form: "quantity" }],
    ["protocol", { defaults: ["TCP"] }],
    ["scheme", { defaults: ["HTTP"] }],
    ["volumeMode", { defaults: ["Filesystem"] }],
  ]),
  keepsEmpty: true,
  get rest(): Form {
    return COMMON_NAMES;
  },
};

/**
 * Whether a stored value equals the desired one: quantities, times and
 * durations by their value, and with the defaults of the server.
 *
 * Only values with a known form are normalized: `1.0` and `1.00` in a ConfigMap
 * are two strings, and so are the port `80` and the name `"80"`.
 */
export function sameValue(
  desired: unknown,
  actual: unknown,
  form?: Form,
): boolean {
  if (desired === actual) return true;
  if (isEmptyValue(desired, form) && isEmptyValue(actual, form)) return true;
  // A map of texts has no null: the server stores an empty text.
  if (form === "texts" && desired === null && actual === "") return true;
  if (Array.isArray(desired)) {
    return Array.isArray(actual) && desired.length === actual.length &&
      desired.every((item, index) => sameValue(item, actual[index], form));
  }
  if (isJsonObject(desired)) {
    if (!isJsonObject(actual)) return false;
    const isCovered = Object.entries(desired).every(([name, value]) =>
      sameValue(value, actual[name], formOfField(form, name)) ||
      isFilled(form, name, { desired: value, actual: actual[name] })
    );
    if (!isCovered) return false;
    return Object.entries(actual).every(([name, value]) =>
      Object.hasOwn(desired, name) ||
      isEmptyValue(value, formOfField(form, name)) ||
      isDefaulted(form, name, value)
    );
  }
  const normalize = typeof form === "string" ? NORMALIZERS[form] : undefined;
  const normalized = normalize?.(desired);
  return normalized !== undefined && normalized === normalize?.(actual);
}

/**
 * Functions that normalize a value for comparing; undefined if it is invalid.
 */
const NORMALIZERS: Readonly<
  Partial<
    Record<Spelling, (value: unknown) => string | number | bigint | undefined>
  >
> = {
  quantity: (value) => {
    try {
      return Quantity.parse(String(value)).nano;
    } catch {
      return undefined;
    }
  },
  time: (value) => {
    if (typeof value !== "string") return undefined;
    // Dates have milliseconds; further digits are compared as text.
    const [, beyond = ""] = /\.\d{3}(\d*)/.exec(value) ?? [];
    const time = Date.parse(value);
    return Number.isNaN(time)
      ? undefined
      : `${time}.${beyond.replace(/0+$/, "")}`;
  },
  duration: (value) =>
    typeof value === "string" ? nanoseconds(value) : undefined,
};

/** Pattern of Go durations: signed numbers with units, such as `1h0m0.5s`. */
const DURATION = /^([+-]?)((?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+$/;
const PART = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/g;
const NANOSECONDS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  "µs": 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};

function nanoseconds(text: string): number | undefined {
  if (text === "0") return 0;
  // The limit bounds the cost of a malicious object.
  if (text.length > 64 || !DURATION.test(text)) return undefined;
  let sum = 0;
  for (const [, amount, unit] of text.matchAll(PART)) {
    sum += Number(amount) * NANOSECONDS[unit!]!;
  }
  return Math.round(text.startsWith("-") ? -sum : sum);
}
