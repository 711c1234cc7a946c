import type { StatusCause, UntypedObject } from "@coracle/operator/core";
import { parseApiVersion } from "../../../core/api/kind.ts";
import { ADMINISTRATOR } from "../../../dev/apiserver/request/user.ts";
import { builtinDefinitions } from "../../../dev/apiserver/builtin/builtin_definitions.ts";
import {
  DEFAULT_RELEASE,
  type KubernetesRelease,
  type KubernetesVersion,
  RELEASES,
} from "../../../dev/apiserver/kubernetes_release.ts";
import { reportedCauses } from "../../../dev/apiserver/validation/object_meta.ts";
import { updateManagedFields } from "../../../dev/apiserver/field_management.ts";
import {
  AdmissionChain,
  attributesOf,
} from "../../../dev/apiserver/admission/admission.ts";
import { admissionPlugins } from "../../../dev/apiserver/admission/plugins.ts";
import type { WriteOptions } from "../../../dev/apiserver/request/query_options.ts";
import type { ResourceRequest } from "../../../dev/apiserver/request/resource_request.ts";
import type {
  HookContext,
  ResourceDefinition,
  ResourceVersion,
} from "../../../dev/apiserver/registry.ts";

/** Time of all requests of these tests, in milliseconds since the epoch. */
export const NOW: number = Date.UTC(2026, 0, 1);
export const NOW_TEXT = "2026-01-01T00:00:00Z";
export const UID = "11111111-2222-3333-4444-555555555555";

const definitionsOf: Map<KubernetesRelease, readonly ResourceDefinition[]> =
  new Map();

/** Definition and version of an object. */
export function builtinOf(
  object: UntypedObject,
  release: KubernetesRelease = DEFAULT_RELEASE,
): { definition: ResourceDefinition; version: ResourceVersion } {
  const definitions = definitionsOf.get(release) ?? builtinDefinitions(release);
  definitionsOf.set(release, definitions);
  const { group, version: name } = parseApiVersion(object.apiVersion ?? "");
  const definition = definitions.find((definition) =>
    definition.group === group && definition.kind === object.kind
  );
  const version = definition?.versions.find((version) => version.name === name);
  if (definition && version) return { definition, version };
  throw new ReferenceError(`Cannot find a kind: received ${object.kind}`);
}

/** Hook context in a cluster with the given objects. */
export function hookContext(
  version: string,
  objects: readonly UntypedObject[] = [],
  { isDeclarative }: Pick<KubernetesRelease, "isDeclarative"> = DEFAULT_RELEASE,
): HookContext {
  const within = (group: string, plural: string) =>
    objects.filter((object) => {
      const { definition } = builtinOf(object);
      return definition.group === group && definition.plural === plural;
    });
  return {
    version,
    now: NOW,
    dryRun: false,
    apply: false,
    isDeclarative,
    user: ADMINISTRATOR,
    find: ({ group, plural }, { name, namespace }) =>
      within(group, plural).find(({ metadata }) =>
        metadata.name === name &&
        (metadata.namespace ?? "") === (namespace ?? "")
      ) ?? (plural === "serviceaccounts" && name === "default"
        ? { metadata: { name } }
        : undefined),
    list: ({ group, plural }) => within(group, plural),
    warn: () => {},
  };
}

/** Runs the mutating admission plug-ins of a new object. */
function admit(
  object: UntypedObject,
  { definition, version, context }: {
    readonly definition: ResourceDefinition;
    readonly version: ResourceVersion;
    readonly context: HookContext;
  },
): void {
  const plugins = admissionPlugins([]).filter(({ name }) =>
    name !== "NamespaceLifecycle"
  );
  const { namespace, name } = object.metadata;
  const request = {
    context: { random: { suffix: () => "abcde" } },
    definition,
    version,
    namespace,
    name,
  } as unknown as ResourceRequest;
  const options = {} as WriteOptions;
  new AdmissionChain(plugins).run(
    "mutate",
    attributesOf(request, {
      operation: "CREATE",
      object,
      options,
      hooks: context,
    }),
  );
}

/** Processes a new object as a server does; returns the stored object and the violations. */
export function createBuiltin(
  body: UntypedObject,
  objects: readonly UntypedObject[] = [],
  kubernetes?: KubernetesVersion,
): { object: UntypedObject; causes: readonly StatusCause[] } {
  const release = kubernetes ? RELEASES[kubernetes] : DEFAULT_RELEASE;
  const { definition, version } = builtinOf(body, release);
  const context = hookContext(version.name, objects, release);
  const { object } = version.decode(structuredClone(body));
  version.setDefaults(object);
  object.metadata.uid = UID;
  object.metadata.creationTimestamp = NOW_TEXT;
  updateManagedFields(undefined, object, {
    definition,
    version,
    manager: "creator",
    time: NOW_TEXT,
  });
  admit(object, { definition, version, context });
  if (definition.hasGeneration) object.metadata.generation = 1;
  definition.prepareForCreate?.(object, context);
  const causes = reportedCauses(
    definition.validateCreate?.(object, context) ?? [],
    definition,
    release,
  );
  return { object, causes };
}
