import { apiVersionOf, type Kind } from "../../core/api/kind.ts";
import { crdManifest } from "../../core/crd/crd_manifest.ts";
import { isDefinedKind } from "../../core/crd/kind_definition.ts";
import { VALUE_FORMS } from "../../core/kinds/value_forms.ts";
import { isJsonObject, type JsonObject } from "../../core/patch/json_value.ts";
import { Quantity } from "../../core/api/quantity.ts";

/**
 * How the server, or a controller written in Go, spells a value: so that two
 * texts that mean the same are the same. `texts` is a map of texts as they are,
 * in which an empty one is an entry, too, and `atomic` anything that is owned as
 * a whole.
 */
export type Spelling = "quantity" | "time" | "duration" | "texts" | "atomic";

/** A field that has something special. */
export interface FieldForm {
  /** How its value, or what is in it, is spelled. */
  readonly form?: Form | undefined;
  /**
   * What is filled in where it was not asked for; an empty list for anything,
   * undefined where nothing is.
   */
  readonly filled?: readonly unknown[] | undefined;
}

/** The special fields of an object. */
export interface StructForm {
  /** By name. */
  readonly fields: ReadonlyMap<string, FieldForm>;
  /** The form of all other fields. */
  readonly rest?: Form | undefined;
  /**
   * Whether what is empty is stored, as it is in custom resources. A struct of
   * Go leaves it out.
   *
   * @default {false}
   */
  readonly keepsEmpty?: boolean | undefined;
  /**
   * Whether its fields are owned one by one, as far as is known.
   *
   * @default {false}
   */
  readonly granular?: boolean | undefined;
}

/**
 * What is known of the values of a field, and of everything below it: lists and
 * maps of something have the form of what is in them. Undefined where nothing is
 * special.
 */
export type Form = Spelling | StructForm;

/** Whether a value is one that the server does not store, since it says nothing. */
export function saysNothing(value: unknown, form: Form | undefined): boolean {
  if (value === undefined || value === null) return true;
  if (typeof form === "object" && form.keepsEmpty) return false;
  if (value === "") return form !== "texts" && form !== "atomic";
  if (Array.isArray(value)) return value.length === 0;
  return isJsonObject(value) &&
    Object.entries(value).every(([name, item]) =>
      saysNothing(item, formOfField(form, name))
    );
}

/**
 * Whether applying nothing to an object leaves its fields as they are: they are
 * not ours, even if the object is.
 */
export function isGranular(form: Form | undefined): boolean {
  return form === undefined ||
    (typeof form === "object" && form.granular === true);
}

/** The form of a field, from that of the object around it. */
export function formOfField(
  form: Form | undefined,
  name: string,
): Form | undefined {
  if (typeof form !== "object") return form;
  const field = form.fields.get(name);
  return field === undefined ? form.rest : field.form;
}

/** Whether the server fills a field in with a value. */
export function isFilledIn(
  form: Form | undefined,
  name: string,
  value: unknown,
): boolean {
  if (typeof form !== "object") return false;
  const filled = form.fields.get(name)?.filled;
  if (filled === undefined) return false;
  const text = JSON.stringify(value);
  return filled.length === 0 ||
    filled.some((known) => JSON.stringify(known) === text);
}

/**
 * The form of the objects of a kind: for built-in kinds from the API's schema,
 * for kinds of `defineKind` from theirs, and for all others from what fields are
 * usually called.
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
    : USUAL;
}

/** The metadata of every kind, be it built-in or not, is a struct of Go. */
const METADATA: FieldForm = {
  form: {
    fields: new Map([
      ["annotations", { form: "texts" }],
      ["labels", { form: "texts" }],
    ]),
  },
};

/** What is known of built-in kinds. */
interface BuiltinForms {
  readonly groups: ReadonlySet<string>;
  readonly forms: ReadonlyMap<string, Form>;
}

/** Read when it is first needed. */
let builtin: BuiltinForms | undefined;

/** What `VALUE_FORMS` holds of a field. */
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
        ? { form: formOf(entry.form), filled: entry.filled }
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

/** How Kubernetes' own schemas recognise a quantity. */
const QUANTITY_PATTERN = "[numkMGTPE]";

/** The form of what the structural schema of a custom resource describes. */
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
      filled: value === undefined ? undefined : [value],
    });
  }
  return {
    fields,
    rest: formOfSchema(additionalProperties),
    keepsEmpty: true,
    granular: schema["x-kubernetes-map-type"] !== "atomic",
  };
}

/** What is in a custom resource and has nothing special. */
const CUSTOM: StructForm = {
  fields: new Map(),
  keepsEmpty: true,
  get rest(): Form {
    return CUSTOM;
  },
};

/**
 * For kinds whose schema is not known: the names that Kubernetes' own types, of
 * which others are made, give to quantities and to what is filled in.
 */
const USUAL: StructForm = {
  fields: new Map<string, FieldForm>([
    ["capacity", { form: "quantity" }],
    ["divisor", { form: "quantity", filled: ["0"] }],
    ["limits", { form: "quantity" }],
    ["requests", { form: "quantity" }],
    ["sizeLimit", { form: "quantity" }],
    ["protocol", { filled: ["TCP"] }],
    ["scheme", { filled: ["HTTP"] }],
    ["volumeMode", { filled: ["Filesystem"] }],
  ]),
  keepsEmpty: true,
  get rest(): Form {
    return USUAL;
  },
};

/**
 * Whether a stored value is what was asked for, however the server spells it:
 * quantities, times and durations by what they mean, and with what it fills in.
 *
 * Only values that are known to be spelled so are read so: `1.0` and `1.00` in a
 * ConfigMap are two texts, and so are the port `80` and the name `"80"` of one.
 *
 * @param desired What was asked for.
 * @param actual What is stored.
 * @param form What is known of the value and of what is in it.
 */
export function sameValue(
  desired: unknown,
  actual: unknown,
  form?: Form,
): boolean {
  if (desired === actual) return true;
  if (saysNothing(desired, form) && saysNothing(actual, form)) return true;
  if (Array.isArray(desired)) {
    return Array.isArray(actual) && desired.length === actual.length &&
      desired.every((item, index) => sameValue(item, actual[index], form));
  }
  if (isJsonObject(desired)) {
    if (!isJsonObject(actual)) return false;
    for (const [name, value] of Object.entries(desired)) {
      if (!sameValue(value, actual[name], formOfField(form, name))) {
        return false;
      }
    }
    return Object.entries(actual).every(([name, value]) =>
      Object.hasOwn(desired, name) ||
      saysNothing(value, formOfField(form, name)) ||
      isFilledIn(form, name, value)
    );
  }
  const meaningOf = typeof form === "string" ? MEANINGS[form] : undefined;
  const meaning = meaningOf?.(desired);
  return meaning !== undefined && meaning === meaningOf?.(actual);
}

/** What a value means, as something that can be compared; undefined if nothing. */
const MEANINGS: Readonly<
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
    // Dates hold milliseconds; digits behind those are compared as text.
    const [, beyond = ""] = /\.\d{3}(\d*)/.exec(value) ?? [];
    const time = Date.parse(value);
    return Number.isNaN(time)
      ? undefined
      : `${time}.${beyond.replace(/0+$/, "")}`;
  },
  duration: (value) =>
    typeof value === "string" ? nanoseconds(value) : undefined,
};

/** A duration as Go writes it: signed numbers with units, such as `1h0m0.5s`. */
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
  // The bound keeps a hostile object from costing anything.
  if (text.length > 64 || !DURATION.test(text)) return undefined;
  let sum = 0;
  for (const [, amount, unit] of text.matchAll(PART)) {
    sum += Number(amount) * NANOSECONDS[unit!]!;
  }
  return Math.round(text.startsWith("-") ? -sum : sum);
}
