import type {
  ManagedFieldsEntry,
  UntypedObject,
} from "@coracle/operator/client";
import {
  isJsonObject,
  type JsonObject,
  labelSelectorText,
  mutableCopy,
  ownValue,
  setOwn,
} from "@coracle/operator/internal";
import { FieldSet, type FieldsV1 } from "../merge/field_set.ts";
import { Schema } from "../merge/schema.ts";
import type { ServerResponse } from "../http/exchange.ts";
import { findStored } from "../read/get.ts";
import { settle } from "../settle.ts";
import { apiVersionIn, objectIn } from "../storage/object_view.ts";
import { representationOf, respondObject } from "../read/respond.ts";
import { asObject, decodeKind } from "../request/body.ts";
import { applyValidation, readTree } from "../request/object_body.ts";
import {
  readWriteOptions,
  type WriteOptions,
} from "../request/query_options.ts";
import {
  kindSubjectOf,
  type ResourceRequest,
} from "../request/resource_request.ts";
import { humanAge } from "../human_duration.ts";
import type { TableShape } from "../read/transform.ts";
import type { ScalePaths, TableColumn } from "../registry.ts";
import {
  badRequest,
  fieldError,
  internalError,
  invalid,
  serverError,
  StatusError,
} from "../status.ts";
import {
  applyTo,
  checkAppliedType,
  invalidPatch,
  type Patch,
  patchApplied,
  readPatch,
} from "./patch.ts";
import { checkPath, type UpdateHow, updateObject } from "./update.ts";
import type { Written } from "./create.ts";
import { isFloat } from "../exact_json.ts";
import { goJsonType } from "../validation/go_value.ts";

const SCALE_VERSION = "autoscaling/v1";

/** Schema of a Scale; a strategic merge patch of it is a plain merge. */
const SCALE_SCHEMA: Schema = new Schema({ type: "object" });

/** Paths of replicas and selector of a resource with a scale subresource. */
function pathsOf(request: ResourceRequest): ScalePaths {
  const { scale } = request.version;
  if (scale === undefined) {
    throw internalError(`${request.definition.plural} cannot be scaled`);
  }
  return scale;
}

function column(name: string, type: string, description: string): TableColumn {
  const format = name === "Name" ? "name" : "";
  return { name, type, format, description, priority: 0 };
}

/** Form of a Scale as a table. */
const scaleTable = ({ definition }: ResourceRequest): TableShape => ({
  columns: [
    column("Name", "string", "The name of the object."),
    column("Desired", "integer", "Number of desired replicas"),
    column("Available", "integer", "Number of actual replicas"),
    column(
      "Age",
      definition.custom ? "date" : "string",
      "When the object was created.",
    ),
  ],
  cells: ({ metadata, spec, status }, now) => [
    metadata.name,
    (spec as { replicas?: number }).replicas ?? null,
    (status as { replicas?: number }).replicas ?? 0,
    humanAge(metadata.creationTimestamp, now),
  ],
});

/** Field names of a dotted path such as `.spec.replicas`. */
function steps(path: string): string[] {
  return path.split(".").filter((step) => step !== "");
}

function valueAt(object: UntypedObject, path: string): unknown {
  let value: unknown = object;
  for (const step of steps(path)) {
    if (!isJsonObject(value)) return undefined;
    value = ownValue(value, step);
  }
  return value;
}

/**
 * Copy of an object with another value at a path; undefined removes the field.
 */
function withValueAt(
  object: UntypedObject,
  path: string,
  value: unknown,
): UntypedObject {
  const copy = structuredClone(object);
  const names = steps(path);
  const last = names.pop() as string;
  let parent: JsonObject = copy as unknown as JsonObject;
  for (const [index, name] of names.entries()) {
    if (!Object.hasOwn(parent, name)) setOwn(parent, name, {});
    const inner = parent[name];
    if (!isJsonObject(inner)) {
      throw serverError(
        `value cannot be set because .${
          names.slice(0, index + 1).join(".")
        } is not a map[string]interface{}`,
      );
    }
    parent = inner;
  }
  if (value === undefined) delete parent[last];
  else setOwn(parent, last, value);
  return copy;
}

/**
 * Scale of an object. As in Go, zero values are omitted, except in the status.
 */
function scaleOf(
  request: ResourceRequest,
  object: UntypedObject,
): UntypedObject {
  const paths = pathsOf(request);
  const replicas = valueAt(object, paths.specReplicas);
  const selector = selectorText(
    paths.labelSelector && valueAt(object, paths.labelSelector),
  );
  const { name, namespace, uid, resourceVersion, creationTimestamp } =
    object.metadata;
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      uid,
      resourceVersion,
      creationTimestamp,
    },
    spec: replicas ? { replicas } : {},
    status: {
      replicas: valueAt(object, paths.statusReplicas) ?? 0,
      ...(selector === "" ? {} : { selector }),
    },
  };
}

function selectorText(selector: unknown): string {
  if (typeof selector === "string") return selector;
  if (!isJsonObject(selector)) return "";
  // ReplicationControllers have plain labels, others a LabelSelector.
  const structured = "matchLabels" in selector ||
    "matchExpressions" in selector;
  const { matchLabels, matchExpressions } = selector as {
    matchLabels?: Record<string, string>;
    matchExpressions?: never[];
  };
  const labels = structured ? matchLabels ?? {} : selector as Record<
    string,
    string
  >;
  return labelSelectorText({
    matchLabels: Object.fromEntries(
      Object.entries(labels).sort(([a], [b]) => a < b ? -1 : 1),
    ),
    matchExpressions: structured ? matchExpressions : undefined,
  });
}

/** Form of the write of a Scale for admission. */
function scaleForm(request: ResourceRequest): UpdateHow["admitted"] {
  const { specReplicas } = pathsOf(request);
  return {
    show: (object) => scaleOf(request, object),
    take: (object, scale) => {
      const replicas = replicasOf(scale);
      return replicas === (valueAt(object, specReplicas) ?? 0)
        ? object
        : withValueAt(object, specReplicas, replicas);
    },
  };
}

/** Handles a GET of a Scale. */
export async function getScale(
  request: ResourceRequest,
): Promise<ServerResponse> {
  const representation = representationOf(request);
  const object = await settle(() => objectIn(findStored(request), request));
  const { specReplicas } = pathsOf(request);
  if (
    request.definition.custom &&
    typeof valueAt(object, specReplicas) !== "number"
  ) {
    throw internalError(
      `the spec replicas field ${JSON.stringify(specReplicas)} does not exist`,
    );
  }
  return await respondObject(request, scaleOf(request, object), {
    status: 200,
    representation,
    shape: scaleTable(request),
  });
}

/** Handles a PUT of a Scale. */
export async function updateScale(
  request: ResourceRequest,
): Promise<ServerResponse> {
  const options = readWriteOptions(request, "UpdateOptions");
  const parsed = await readTree(request, "Scale", true);
  const { value } = parsed;
  const { kind = "Scale", apiVersion = "autoscaling/v1" } = value;
  if (kind !== "Scale" || apiVersion !== "autoscaling/v1") {
    throw badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (autoscaling/v1)`,
    );
  }
  const { scale, problems } = decodedScale(value, (why) =>
    badRequest(
      request.definition.custom
        ? 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
        : `${UNHANDLED}${why}`,
    ));
  applyValidation(
    request,
    [...parsed.warnings, ...problems],
    options.fieldValidation,
    () =>
      badRequest(
        `${UNHANDLED}strict decoding error: ${
          [...parsed.objections, ...problems].join(", ")
        }`,
      ),
  );
  checkPath(request, scale.metadata);
  return await writeScale(request, options, () => scale);
}

/** Handles a PATCH of a Scale. */
export async function patchScale(
  request: ResourceRequest,
): Promise<ServerResponse> {
  const { patch, options } = await readPatch(request);
  if (patch.type === "apply") return await applyScale(request, patch, options);
  return await writeScale(request, options, (current) => {
    const value = applyTo(current, patch, SCALE_SCHEMA);
    if (!isJsonObject(value)) throw badRequest("the patch removes the Scale");
    const { scale, problems } = decodedScale(
      value,
      (why) => invalidPatch(value, why),
    );
    const { warnings, objections } = patch;
    applyValidation(
      request,
      [...warnings, ...problems],
      options.fieldValidation,
      () =>
        invalidPatch(
          value,
          `strict decoding error: ${[...objections, ...problems].join(", ")}`,
        ),
    );
    checkPath(request, scale.metadata);
    return scale;
  });
}

async function applyScale(
  request: ResourceRequest,
  patch: Patch,
  options: WriteOptions,
): Promise<ServerResponse> {
  const { definition } = request;
  const { specReplicas } = pathsOf(request);
  const scale = asObject(patch.value as JsonObject);
  checkAppliedType(scale, { kind: "Scale", apiVersion: SCALE_VERSION });
  const replicas = isJsonObject(scale.spec) ? scale.spec.replicas : undefined;
  const written = await settle(
    (): Written => {
      const stored = findStored(request);
      const live = objectIn(stored, request);
      const owned = live.metadata.managedFields?.some((entry) =>
        ownsPath(entry, specReplicas)
      );
      if (definition.custom && !owned) throw notConverted(EXISTING, "/");
      if (replicas === undefined) return { stored, created: false };
      const configuration = withValueAt(
        {
          apiVersion: live.apiVersion,
          kind: definition.kind,
          metadata: { name: scale.metadata.name },
        },
        specReplicas,
        replicasOf(scale),
      );
      return inScaleTerms(() =>
        patchApplied(request, {
          patch: { ...patch, value: configuration },
          options,
          admitted: scaleForm(request),
          arrangeOwners: (object) => arrangeOwners(object, specReplicas),
          check: (object) => {
            const { name } = object.metadata;
            if (
              definition.custom &&
              valueAt(live, specReplicas) !== valueAt(object, specReplicas)
            ) throw notConverted("failed to convert new object", `/${name}`);
          },
        })
      );
    },
    request.warnings,
  );
  return await respondScale(request, written);
}

/**
 * Arranges the owners of an object after a write of its Scale as kube-apiserver
 * does: those of Scales own the replicas only and have no time; an updater of the
 * object that still owns the replicas keeps an entry without time for them beside
 * that for its other fields, until the next write. What has no time comes first.
 */
function arrangeOwners({ metadata }: UntypedObject, path: string): void {
  const replicas = FieldSet.of([steps(path).map((name) => `f:${name}`)]);
  const arranged = (entry: ManagedFieldsEntry): ManagedFieldsEntry[] => {
    const { time, ...timeless } = entry;
    const owns = ownsPath(entry, path);
    const alone = { ...timeless, fieldsV1: replicas.toJSON() };
    if (entry.subresource === "scale") return [owns ? alone : timeless];
    if (!owns || entry.operation === "Apply") return [entry];
    const others = FieldSet.fromJSON(entry.fieldsV1 as FieldsV1)
      .minus(replicas);
    return [
      ...time === undefined ? [] : [alone],
      ...others.isEmpty ? [] : [{ ...entry, fieldsV1: others.toJSON() }],
    ];
  };
  const rank = ({ operation, time }: ManagedFieldsEntry) =>
    operation === "Apply" ? 0 : time === undefined ? 1 : 2;
  const entries = metadata.managedFields?.flatMap(arranged)
    .sort((a, b) => rank(a) - rank(b));
  if (entries !== undefined) metadata.managedFields = entries;
}

/** Beginning of errors about bodies that are no Scale. */
const UNHANDLED = 'Scale in version "v1" cannot be handled as a Scale: ';

/** Decodes a Scale, with the names of its unknown fields. */
function decodedScale(
  value: JsonObject,
  refusal: (why: string) => StatusError,
): { readonly scale: UntypedObject; readonly problems: readonly string[] } {
  try {
    const { object, problems } = decodeKind(
      "io.k8s.api.autoscaling.v1.Scale",
      mutableCopy(value),
    );
    return { scale: asObject(object), problems };
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    throw refusal(error.message);
  }
}

/**
 * Rewrites conflicts so that they name the version of the Scale, not that of
 * the object.
 */
function inScaleTerms<T>(write: () => T): T {
  try {
    return write();
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.code !== 409) {
      throw error;
    }
    const { message = "", details } = error.status;
    const text = (message: string) =>
      message.replaceAll(/ using [^\s:]+/g, " using autoscaling/v1");
    throw new StatusError({
      ...error.status,
      message: text(message),
      details: {
        ...details,
        causes: details?.causes?.map((cause) => ({
          ...cause,
          message: text(cause.message ?? ""),
        })),
      },
    });
  }
}

const EXISTING =
  "failed to create manager for existing fields: failed to convert live object";

/**
 * Error 500: kube-apiserver cannot apply the Scale of a custom resource if the
 * replicas have no owner yet, or change.
 */
function notConverted(what: string, name: string): StatusError {
  return serverError(
    `${what} (${name}; ${SCALE_VERSION}, Kind=Scale) to proper version: request to convert CR to an invalid group/version: ${SCALE_VERSION}`,
  );
}

function replicasOf(scale: UntypedObject): number {
  const { replicas = 0 } = (scale.spec ?? {}) as { replicas?: unknown };
  if (typeof replicas === "number" && Number.isInteger(replicas)) {
    return replicas;
  }
  throw badRequest(
    `${UNHANDLED}json: cannot unmarshal ${
      notAnInteger(replicas)
    } into Go struct field ScaleSpec.spec.replicas of type int32`,
  );
}

/** What Go's decoder names in place of an integer. */
function notAnInteger(value: unknown): string {
  if (isFloat(value)) return `number ${value.description}`;
  return typeof value === "number" ? `number ${value}` : goJsonType(value);
}

/** Whether an entry of managedFields has a dotted path. */
function ownsPath({ fieldsV1 }: ManagedFieldsEntry, path: string): boolean {
  let fields: unknown = fieldsV1;
  for (const step of steps(path)) {
    fields = isJsonObject(fields) ? fields[`f:${step}`] : undefined;
  }
  return fields !== undefined;
}

async function writeScale(
  request: ResourceRequest,
  options: WriteOptions,
  next: (current: UntypedObject) => UntypedObject,
): Promise<ServerResponse> {
  const { specReplicas } = pathsOf(request);
  const apiVersion = apiVersionIn(request);
  const owned: UpdateHow["owned"] = {
    // Zero replicas are omitted from a Scale, and so are not owned.
    show: (object) =>
      withValueAt(
        object,
        specReplicas,
        valueAt(object, specReplicas) || undefined,
      ),
    takes: (entry) =>
      entry.apiVersion === apiVersion && ownsPath(entry, specReplicas),
  };
  const change = (live: UntypedObject) => {
    const scale = next(scaleOf(request, live));
    const replicas = replicasOf(scale);
    checkReplicas(request, replicas);
    const object = withValueAt(live, specReplicas, replicas);
    const { resourceVersion } = scale.metadata;
    if (resourceVersion) object.metadata.resourceVersion = resourceVersion;
    return object;
  };
  const written = await settle(
    () =>
      updateObject(request, {
        options,
        owned,
        admitted: scaleForm(request),
        arrangeOwners: (object) => arrangeOwners(object, specReplicas),
        next: change,
      }),
    request.warnings,
  );
  return await respondScale(request, written);
}

function checkReplicas(request: ResourceRequest, replicas: number): void {
  if (replicas >= 0) return;
  if (request.definition.custom) {
    throw invalid(kindSubjectOf(request), [
      fieldError.invalid(
        pathsOf(request).specReplicas,
        replicas,
        "should be a non-negative integer",
      ),
    ]);
  }
  throw invalid({ group: "autoscaling", kind: "Scale", name: request.name }, [
    fieldError.invalid(
      "spec.replicas",
      replicas,
      "must be greater than or equal to 0",
    ),
  ]);
}

async function respondScale(
  request: ResourceRequest,
  written: Written,
): Promise<ServerResponse> {
  const object = "stored" in written
    ? await settle(() => objectIn(written.stored, request))
    : written.object;
  return await respondObject(request, scaleOf(request, object), {
    status: 200,
    representation: representationOf(request),
    shape: scaleTable(request),
  });
}
