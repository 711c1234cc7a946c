import type { UntypedObject } from "@coracle/operator/client";
import type { CrdVersion } from "@coracle/operator/crd";
import type {
  CrdObject,
  JsonObject,
  OpenApiSchema,
  StatusCause,
} from "@coracle/operator/internal";
import { Schema } from "../merge/schema.ts";
import { builtinSchema } from "../builtin/go_types.ts";
import { compareVersions } from "@coracle/operator/internal";
import type {
  DecodedBody,
  HookContext,
  ResourceVersion,
  ScalePaths,
  Subresource,
  TableColumn,
  Verb,
} from "../registry.ts";
import { badRequest, fieldError } from "../status.ts";
import { compileRules, type RuleValidator } from "./cel/rule_validator.ts";
import { Correlation } from "./schema/correlation.ts";
import { setSchemaDefaults } from "./schema/defaulting.ts";
import { decodeEmbedded, embeddedCauses } from "./schema/embedded_resources.ts";
import { ROOT_FIELD } from "../validation/field_path.ts";
import { compileJsonPath } from "./json_path.ts";
import { listTypeCauses } from "./schema/list_types.ts";
import { DecodeError, decodeObjectMeta } from "../builtin/decode.ts";
import { type PrinterColumns, printerColumns } from "./printer_columns.ts";
import { pruneNulls, pruneUnknown } from "./schema/pruning.ts";
import { publishedRoot } from "./published_schema.ts";
import { scaleCauses } from "./scale_rules.ts";
import { findingCauses } from "./schema/schema_findings.ts";
import { validateSchema } from "./schema/schema_validator.ts";
import { takeFloats } from "../exact_json.ts";

/** Reasons of violations after which CEL rules are not run, because values may have wrong types. */
const BLOCKING: ReadonlySet<string> = new Set([
  "FieldValueNotSupported",
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTooMany",
  "FieldValueTypeInvalid",
]);

const SUBRESOURCE_VERBS: readonly Verb[] = ["get", "patch", "update"];

const NOT_CHECKED =
  "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

/** Version of a custom resource: decoding, defaults, validation and columns by its schema. */
export class CustomVersion implements ResourceVersion {
  readonly name: string;
  readonly served: boolean;
  readonly deprecationWarning: string | undefined;
  readonly scale: ScalePaths | undefined;
  readonly selectableFields: ResourceVersion["selectableFields"];
  readonly subresources: readonly Subresource[];
  /** Whether the status subresource is enabled. */
  readonly hasStatus: boolean;
  readonly #kind: string;
  readonly #version: CrdVersion;
  readonly #source: OpenApiSchema;
  #schema: Schema | undefined;
  #columns: PrinterColumns | undefined;
  #rules: RuleValidator | undefined | "unknown" = "unknown";

  constructor(crd: CrdObject, version: CrdVersion) {
    this.name = version.name;
    this.served = version.served;
    this.deprecationWarning = deprecationWarning(crd, version);
    this.#kind = crd.spec.names.kind;
    this.#version = version;
    this.#source = version.schema?.openAPIV3Schema ?? {};
    this.hasStatus = version.subresources?.status !== undefined;
    this.scale = scalePaths(version);
    this.selectableFields = selectableFields(version);
    this.subresources = subresources(version, crd.spec.names.kind);
  }

  get schema(): Schema {
    return this.#schema ??= new Schema(
      publishedRoot(this.#source),
      (reference) =>
        builtinSchema(reference.slice(reference.lastIndexOf("/") + 1)),
    );
  }

  get columns(): readonly TableColumn[] {
    return this.#printer.columns;
  }

  cells(object: UntypedObject, now: number): readonly unknown[] {
    return this.#printer.cells(object, now);
  }

  get #printer(): PrinterColumns {
    return this.#columns ??= printerColumns(this.#version);
  }

  decode(body: UntypedObject): DecodedBody {
    try {
      return this.#decode(body);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      throw badRequest(
        `${this.#kind} in version ${
          JSON.stringify(this.name)
        } cannot be handled as a ${this.#kind}: ${error.message}`,
      );
    }
  }

  #decode(body: UntypedObject): DecodedBody {
    const object = body as unknown as JsonObject;
    takeFloats(object);
    const { metadata, unknown } = decodeObjectMeta(object.metadata ?? {});
    const problems = unknown.map((name) => `metadata.${name}`);
    // An object of another kind is rejected later; the schema does not apply to it.
    if (object.kind === this.#kind) {
      problems.push(...pruneUnknown(object, this.#source));
      pruneNulls(object, this.#source);
      problems.push(...decodeEmbedded(object, this.#source));
    }
    object.metadata = metadata;
    return {
      object: body,
      problems: problems.map((path) => `unknown field ${JSON.stringify(path)}`),
    };
  }

  setDefaults(object: UntypedObject): void {
    setSchemaDefaults(object, this.#source);
  }

  /** Validates a new object; returns the violations. */
  createCauses(object: UntypedObject): StatusCause[] {
    const causes = [
      ...findingCauses(validateSchema(object, this.#source), ""),
      ...scaleCauses(object, this.scale, ["spec", "status"]),
      ...embeddedCauses(object, this.#source),
      ...listTypeCauses(object, this.#source),
    ];
    return [
      ...causes,
      ...this.#ruleCauses(
        causes,
        () => this.#validator?.validate(object, undefined),
      ),
    ];
  }

  /** Validates an update; invalid values that did not change are accepted. */
  updateCauses(
    object: UntypedObject,
    live: UntypedObject,
    { subresource, warn }: HookContext,
  ): StatusCause[] {
    const forStatus = subresource === "status";
    const correlation = forStatus
      ? undefined
      : new Correlation(object, live, this.#source);
    const lists = listTypeCauses(live, this.#source).length > 0
      ? []
      : listTypeCauses(object, this.#source);
    const causes = [
      ...(forStatus
        ? this.#statusCauses(object)
        : findingCauses(validateSchema(object, this.#source, correlation), "")),
      ...scaleCauses(
        object,
        this.scale,
        forStatus ? ["status"] : ["spec", "status"],
      ),
      ...(forStatus ? [] : embeddedCauses(object, this.#source)),
      ...lists,
    ];
    return [
      ...causes,
      ...this.#ruleCauses(
        causes,
        () => this.#validator?.validate(object, live, { correlation, warn }),
      ),
    ];
  }

  #statusCauses({ status }: UntypedObject): StatusCause[] {
    const schema = this.#source.properties?.status;
    return status === undefined || schema === undefined
      ? []
      : findingCauses(validateSchema(status, schema), "status");
  }

  #ruleCauses(
    causes: readonly StatusCause[],
    run: () => readonly StatusCause[] | undefined,
  ): readonly StatusCause[] {
    if (this.#validator === undefined) return [];
    return causes.some(({ reason = "" }) => BLOCKING.has(reason))
      ? [fieldError.invalid(ROOT_FIELD, null, NOT_CHECKED)]
      : run() ?? [];
  }

  get #validator(): RuleValidator | undefined {
    if (this.#rules === "unknown") {
      this.#rules = compileRules(this.#source, true);
    }
    return this.#rules;
  }
}

function deprecationWarning(
  { spec }: CrdObject,
  { name, deprecated, deprecationWarning: own }: CrdVersion,
): string | undefined {
  if (!deprecated) return undefined;
  if (own !== undefined) return own;
  const { group, names: { kind }, versions } = spec;
  const [better] = versions
    .filter((other) =>
      other.served && !other.deprecated && compareVersions(other.name, name) < 0
    )
    .map((other) => other.name).sort(compareVersions);
  const text = `${group}/${name} ${kind} is deprecated`;
  return better === undefined
    ? text
    : `${text}; use ${group}/${better} ${kind}`;
}

function subresources(
  { subresources: { status, scale } = {} }: CrdVersion,
  kind: string,
): readonly Subresource[] {
  const verbs = SUBRESOURCE_VERBS;
  return [
    // Empty: the group and version of the resource itself.
    ...(status
      ? [{
        name: "status",
        kind,
        group: "",
        version: "",
        verbs,
        fields: ["status"],
      }]
      : []),
    ...(scale
      ? [{
        name: "scale",
        kind: "Scale",
        group: "autoscaling",
        version: "v1",
        verbs,
      }]
      : []),
  ];
}

function scalePaths({ subresources }: CrdVersion): ScalePaths | undefined {
  const scale = subresources?.scale;
  return scale && {
    specReplicas: scale.specReplicasPath,
    statusReplicas: scale.statusReplicasPath,
    labelSelector: scale.labelSelectorPath,
  };
}

function selectableFields(
  { selectableFields = [] }: CrdVersion,
): ResourceVersion["selectableFields"] {
  return new Map(
    selectableFields.map(({ jsonPath }) => {
      const path = compileJsonPath(jsonPath);
      return [jsonPath.replace(/^\./, ""), (object: UntypedObject) => {
        const [value] = path.find(object);
        return value === undefined || value === null ? "" : String(value);
      }];
    }),
  );
}
