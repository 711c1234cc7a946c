/**
 * Resource definitions of the built-in kinds of Kubernetes 1.37: decoding,
 * defaults, validation, lifecycle, conversion and table columns, each in a
 * folder or file of its own, over the OpenAPI data in `data`. Guarantees: the
 * answers equal those of kube-apiserver byte for byte, and the creation of
 * definitions is cheap (data is loaded lazily). Works on objects only: must not
 * import storage, requests, HTTP or discovery.
 *
 * @module
 */
import type { UntypedObject } from "@coracle/operator/client";
import { apiVersionOf, parseApiVersion } from "@coracle/operator/internal";
import type { Schema } from "../merge/schema.ts";
import type {
  DecodedBody,
  ResourceDefinition,
  ResourceVersion,
  ScalePaths,
  Subresource,
  TableColumn,
} from "../registry.ts";
import { CRD_LIFECYCLE } from "../crd/crd_lifecycle.ts";
import {
  DEFAULT_RELEASE,
  type KubernetesRelease,
} from "../kubernetes_release.ts";
import { badRequest } from "../status.ts";
import { convertAutoscaler } from "./autoscaler_conversion.ts";
import { hasOwnColumns, rowConditionsOf, rowOf } from "./columns/table_rows.ts";
import { type ResourceData, RESOURCES } from "./data/resource_table.ts";
import { DecodeError, decodeTyped, emptyStruct } from "./decode.ts";
import { convertEvent } from "./event_conversion.ts";
import { definitionOfKind, type GoType, goType } from "./go_types.ts";
import { type Lifecycle, lifecycleOf } from "./lifecycle/lifecycle.ts";
import { LackingFields } from "./lacking_fields.ts";
import { serviceLifecycle } from "./lifecycle/service_lifecycle.ts";
import { StoredForm } from "./stored_form.ts";
import { setTypedDefaults } from "./typed_defaults.ts";
import { objectWarnings } from "./object_warnings.ts";
import { validatorsOf } from "./validation/validators.ts";

/** Paths of a Scale in the built-in resources that have it. */
const SCALE: ScalePaths = {
  specReplicas: ".spec.replicas",
  statusReplicas: ".status.replicas",
  labelSelector: ".spec.selector",
};

const CRD_KEY = "customresourcedefinitions.apiextensions.k8s.io";

/** Storage of resources whose objects are stored under another resource. */
const STORED_AS: ReadonlyMap<string, { group: string; plural: string }> =
  new Map([["events.events.k8s.io", { group: "", plural: "events" }]]);

/** Stored forms of 1.37, and of releases before it. */
const FORMS = { newest: new StoredForm(false), earlier: new StoredForm(true) };

/** Resources whose generation is counted from 1.37 on (gate HPAGeneration). */
const COUNTED_LATELY: readonly string[] = [
  "horizontalpodautoscalers.autoscaling",
];

/** Version converters of the resources that have several versions. */
const CONVERTERS: ReadonlyMap<
  string,
  (object: UntypedObject, apiVersion: string) => UntypedObject
> = new Map([
  ["horizontalpodautoscalers.autoscaling", convertAutoscaler],
  ["events", convertEvent],
  ["events.events.k8s.io", convertEvent],
]);

/** Top-level fields, besides metadata, that a write to a subresource may change. */
const SUBRESOURCE_FIELDS: Readonly<Record<string, readonly string[]>> = {
  status: ["status"],
  approval: ["status"],
  finalize: ["spec"],
  ephemeralcontainers: ["spec"],
};

/**
 * Creates the definitions of all built-in resources of a release. Each call
 * returns a new set with its own allocation of Service addresses and node ports.
 */
export function builtinDefinitions(
  release: KubernetesRelease = DEFAULT_RELEASE,
): readonly ResourceDefinition[] {
  const { lackingResources, strictServiceNames, hasEarlierGates } = release;
  const lacking = new LackingFields(release.lackingFields);
  const lifecycles = new Map<string, Lifecycle>([
    [CRD_KEY, CRD_LIFECYCLE],
    ["services", serviceLifecycle()],
  ]);
  const byResource = new Map<string, ResourceData[]>();
  for (const data of RESOURCES) {
    const key = qualifiedName(data);
    if (lackingResources.includes(key)) continue;
    byResource.set(key, [...byResource.get(key) ?? [], data]);
  }
  return [...byResource].flatMap(([key, versions]) => {
    const [first] = versions;
    if (first === undefined) return [];
    const isUncounted = hasEarlierGates && COUNTED_LATELY.includes(key);
    const lifecycle = lifecycles.get(key) ??
      lifecycleOf(key, isUncounted ? [] : first.generationFields);
    const made = definition(key, {
      ...first,
      ...isUncounted &&
        { traits: { ...first.traits, hasGeneration: false } },
      subresources: first.subresources.filter(({ name }) =>
        !lackingResources.includes(`${key}/${name}`)
      ),
    }, {
      versions,
      lifecycle,
      lacking,
      columns: release.columns[key],
      isEarlier: hasEarlierGates,
    });
    return key === "services" && strictServiceNames
      ? [{ ...made, nameRule: "dns-1035-label" }]
      : [made];
  });
}

function qualifiedName({ group, plural }: ResourceData): string {
  return group === "" ? plural : `${plural}.${group}`;
}

function definition(
  key: string,
  data: ResourceData,
  { versions, lifecycle, lacking, columns, isEarlier }: {
    readonly versions: readonly ResourceData[];
    readonly lifecycle: Lifecycle;
    readonly lacking: LackingFields;
    readonly columns: readonly string[] | undefined;
    /** Whether features that 1.37 enables are off. */
    readonly isEarlier: boolean;
  },
): ResourceDefinition {
  const form = isEarlier ? FORMS.earlier : FORMS.newest;
  const { group, plural, singular, kind, scope } = data;
  return {
    group,
    plural,
    singular,
    kind,
    listKind: `${kind}List`,
    scope,
    shortNames: data.shortNames,
    categories: data.categories,
    verbs: data.verbs,
    versions: versions.map((version) =>
      new BuiltinVersion(key, version, { lacking, columns, isEarlier })
    ),
    storageVersion: data.version,
    custom: false,
    storedAs: STORED_AS.get(key),
    subresources: data.subresources.map((each) => subresource(data, each)),
    ...data.traits,
    convert: converterOf(key, { group, kind }),
    ...validatorsOf(key, data),
    warnings: objectWarnings,
    ...lifecycle,
    prepareForCreate(object, context): void {
      lifecycle.prepareForCreate?.(object, context);
      form.convert(typeOfObject(object), object);
    },
    prepareForUpdate(object, live, context): void {
      lifecycle.prepareForUpdate?.(object, live, context);
      form.convert(typeOfObject(object), object);
    },
  };
}

function typeOfObject({ apiVersion = "", kind = "" }: UntypedObject): GoType {
  return typeOf(apiVersion, kind);
}

function subresource(
  data: ResourceData,
  { name, kind, group, version, verbs }: ResourceData["subresources"][number],
): Subresource {
  const isOwn = group === "" && version === "";
  return {
    name,
    kind,
    group: isOwn ? data.group : group,
    version: isOwn ? data.version : version,
    verbs,
    fields: SUBRESOURCE_FIELDS[name],
  };
}

function converterOf(
  key: string,
  { group, kind }: { readonly group: string; readonly kind: string },
): ResourceDefinition["convert"] {
  const converter = CONVERTERS.get(key);
  if (converter === undefined) return (object) => object;
  return (object, version) => {
    const apiVersion = apiVersionOf({ group, version });
    if (object.apiVersion === apiVersion) return object;
    const converted = converter(object, apiVersion);
    const type = typeOf(apiVersion, kind);
    const result = decodeTyped(type, converted).object as UntypedObject;
    setTypedDefaults(type, result);
    return result;
  };
}

function typeOf(apiVersion: string, kind: string): GoType {
  const name = definitionOfKind(apiVersion, kind);
  if (name !== undefined) return goType(name);
  throw new ReferenceError(
    `Cannot find the OpenAPI definition of a kind: received ${apiVersion} ${kind}`,
  );
}

/** Texts of the `Warning` headers of deprecated kinds. */
const DEPRECATIONS: ReadonlyMap<string, string> = new Map([
  ["componentstatuses", "v1 ComponentStatus is deprecated in v1.19+"],
]);

/** Version of a built-in kind; its schema is loaded lazily. */
class BuiltinVersion implements ResourceVersion {
  readonly name: string;
  readonly served = true;
  readonly selectableFields: ResourceVersion["selectableFields"];
  readonly scale: ScalePaths | undefined;
  readonly #resource: string;
  readonly #data: ResourceData;
  readonly #lacking: LackingFields;
  /** Names of the columns, where the release has fewer. */
  readonly #names: readonly string[] | undefined;
  readonly #isEarlier: boolean;
  #type: GoType | undefined;
  #columns: readonly TableColumn[] | undefined;
  #empty: UntypedObject | undefined;

  constructor(
    resource: string,
    data: ResourceData,
    { lacking, columns, isEarlier }: {
      readonly lacking: LackingFields;
      readonly columns: readonly string[] | undefined;
      readonly isEarlier: boolean;
    },
  ) {
    this.name = data.version;
    this.selectableFields = selectableFieldsOf(
      resource,
      data.selectableFields,
    );
    const scales = data.subresources.some(({ name }) => name === "scale");
    this.scale = scales ? SCALE : undefined;
    this.#resource = resource;
    this.#data = data;
    this.#lacking = lacking;
    this.#names = columns;
    this.#isEarlier = isEarlier;
  }

  get deprecationWarning(): string | undefined {
    return DEPRECATIONS.get(this.#resource);
  }

  get #goType(): GoType {
    return this.#type ??= typeOf(apiVersionOf(this.#data), this.#data.kind);
  }

  get schema(): Schema {
    return this.#goType.schema;
  }

  get columns(): readonly TableColumn[] {
    return this.#columns ??= this.#data.columns.map(
      ([name, type, format, priority]) => ({
        name,
        type,
        format,
        priority,
        description: "",
      }),
    ).filter(({ name }) => this.#names?.includes(name) ?? true);
  }

  decode(body: UntypedObject): DecodedBody {
    try {
      const { object, problems } = decodeTyped(this.#goType, body);
      for (const path of this.#lacking.drop(this.#goType, object)) {
        problems.push(`unknown field "${path}"`);
      }
      return { object: object as UntypedObject, problems };
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      const { kind } = this.#data;
      const { version } = parseApiVersion(apiVersionOf(this.#data));
      throw badRequest(
        `${kind} in version ${
          JSON.stringify(version)
        } cannot be handled as a ${kind}: ${error.message}`,
      );
    }
  }

  setDefaults(object: UntypedObject): void {
    setTypedDefaults(this.#goType, object, this.#isEarlier);
  }

  empty(): UntypedObject {
    return this.#empty ??= {
      apiVersion: apiVersionOf(this.#data),
      kind: this.#data.kind,
      ...emptyStruct(this.#goType),
    } as UntypedObject;
  }

  get nullRows(): boolean {
    return !hasOwnColumns(this.#resource) || this.#resource === CRD_KEY;
  }

  cells(object: UntypedObject, now: number): readonly unknown[] {
    const cells = rowOf(this.#resource, object, now);
    const names = this.#names;
    return names === undefined
      ? cells
      : cells.filter((_, index) =>
        names.includes(this.#data.columns[index]?.[0] ?? "")
      );
  }

  rowConditions(
    object: UntypedObject,
  ): readonly Readonly<Record<string, string>>[] | undefined {
    return rowConditionsOf(this.#resource, object);
  }
}

/** Function that reads a selectable field of an object as text. */
type FieldReader = (object: UntypedObject) => string;

/** Creates a reader of a dotted path, which returns `absent` if the field is not set. */
function reader(path: string, absent = ""): FieldReader {
  const names = path.split(".");
  return (object) => {
    let value: unknown = object;
    for (const name of names) {
      value = (value as Record<string, unknown> | null | undefined)?.[name];
    }
    return value === undefined || value === null ? absent : String(value);
  };
}

function readers(fields: readonly string[]): Map<string, FieldReader> {
  return new Map(
    fields.map((text) => {
      const [, field = "", path = field, absent] =
        /^([^=?]+)(?:=([^?]+))?(?:\?(.*))?$/.exec(text) ?? [];
      return [field, reader(path, absent)];
    }),
  );
}

// An Event has one more field: its source, or else the controller that reports it.
const component = reader("source.component");
const reporter = reader("reportingComponent");
const eventSource: FieldReader = (event) => component(event) || reporter(event);

/** Readers of the selectable fields of a resource, as in its data. */
function selectableFieldsOf(
  resource: string,
  fields: readonly string[],
): ReadonlyMap<string, FieldReader> {
  const found = readers(fields);
  return resource === "events" ? found.set("source", eventSource) : found;
}
