/**
 * Operator with fourteen security policies for pods and Services, as clusters with
 * strict rules have them. Objects of a kind of its own exempt pods and Services:
 *
 *     kubectl apply -f - <<EOF
 *     apiVersion: gallery.coracle.dev/v1
 *     kind: Exemption
 *     metadata: { namespace: policy-exemptions, name: collector }
 *     spec:
 *       policies: [HostNamespaces, HostPathWrite]
 *       namespace: metrics
 *       name: ^collector-
 *     EOF
 */
import {
  defineKind,
  deny,
  Operator,
  type OperatorOptions,
} from "@coracle/operator";
import type {
  AdmissionContext,
  AdmissionHandlers,
} from "@coracle/operator/core";
import {
  type Container,
  Pod,
  type PodSecurityContext,
  type PodSpec,
  type SecurityContext,
  Service,
} from "@coracle/operator/kinds";
import { z } from "zod";

/** Namespace whose objects exempt others, and whom only administrators write. */
const EXEMPTIONS = "policy-exemptions";
const MARK = "policies.gallery.coracle.dev";

type Wrong = readonly [field: string, message: string];

/** Containers of all types, with their paths. */
function containersOf(spec: PodSpec): readonly [string, Container][] {
  return (["containers", "initContainers", "ephemeralContainers"] as const)
    .flatMap((list) =>
      (spec[list] ?? []).map((one, at): [string, Container] => [
        `spec.${list}[${at}]`,
        one as Container,
      ])
    );
}

/** Policy about the security context of the pod and of each container. */
function contexts(
  isWrong: (context: SecurityContext & PodSecurityContext) => unknown,
  message: string,
  ofPod = true,
) {
  return (spec: PodSpec): readonly Wrong[] =>
    [
      ...(ofPod ? [["spec", spec] as const] : []),
      ...containersOf(spec),
    ].filter(([, { securityContext = {} }]) => isWrong(securityContext)).map((
      [path],
    ) => [`${path}.securityContext`, message]);
}

const VOLUMES =
  /^(?:configMap|csi|downwardAPI|emptyDir|ephemeral|persistentVolumeClaim|projected|secret)$/;
const SELINUX_TYPES = /^container(?:_init|_kvm)?_t$/;

const POD_POLICIES = {
  HostNamespaces: (spec) =>
    (["hostNetwork", "hostIPC", "hostPID"] as const).filter((field) =>
      spec[field]
    ).map((field) => [`spec.${field}`, "must not be true"]),
  HostPorts: (spec) =>
    containersOf(spec).filter(([, { ports = [] }]) =>
      ports.some(({ hostPort }) => hostPort)
    ).map(([path]) => [`${path}.ports`, "must have no hostPort"]),
  HostPathWrite: ({ volumes = [], ...spec }) =>
    volumes.filter(({ hostPath, name }) =>
      hostPath &&
      containersOf(spec as PodSpec).some(([, { volumeMounts }]) =>
        volumeMounts?.some((mount) => mount.name === name && !mount.readOnly)
      )
    ).map(({ name }) => ["spec.volumes", `${name} must be mounted readOnly`]),
  VolumeTypes: ({ volumes = [] }) =>
    volumes.filter((volume) =>
      Object.keys(volume).some((key) => key !== "name" && !VOLUMES.test(key))
    ).map(({ name }) => ["spec.volumes", `${name} is of a type of the host`]),
  Privileged: contexts(
    ({ privileged, allowPrivilegeEscalation = true }) =>
      privileged || allowPrivilegeEscalation,
    "must neither be privileged nor allow it",
    false,
  ),
  NonRoot: contexts(
    ({ runAsNonRoot, runAsUser, supplementalGroups }) =>
      runAsNonRoot === false || runAsUser === 0 ||
      supplementalGroups?.includes(0),
    "must not run as root",
  ),
  ProcMount: contexts(
    ({ procMount = "Default" }) => procMount !== "Default",
    "must have the default procMount",
    false,
  ),
  Seccomp: contexts(
    ({ seccompProfile }) => seccompProfile?.type === "Unconfined",
    "must have a seccomp profile",
  ),
  SELinuxUser: contexts(
    ({ seLinuxOptions }) => seLinuxOptions?.user || seLinuxOptions?.role,
    "must not choose a user or role of SELinux",
  ),
  SELinuxType: contexts(
    ({ seLinuxOptions: { type } = {} }) => type && !SELINUX_TYPES.test(type),
    "must have an SELinux type of containers",
  ),
  DropCapabilities: contexts(
    ({ capabilities }) => !capabilities?.drop?.includes("ALL"),
    "must drop the capabilities ALL",
    false,
  ),
  AddCapabilities: contexts(
    ({ capabilities }) =>
      capabilities?.add?.some((name) => name !== "NET_BIND_SERVICE"),
    "must add no capability but NET_BIND_SERVICE",
    false,
  ),
} satisfies Record<string, (spec: PodSpec) => readonly Wrong[]>;

const SERVICE_POLICIES = {
  ExternalNames: ({ type }) => typed(type, "ExternalName"),
  NodePorts: ({ type }) => typed(type, "NodePort"),
} satisfies Record<
  string,
  (spec: NonNullable<Service["spec"]>) => readonly Wrong[]
>;

function typed(type: string | undefined, wrong: string): readonly Wrong[] {
  return type === wrong ? [["spec.type", `must not be ${wrong}`]] : [];
}

/** Pods and Services that policies do not apply to. */
const Exemption = defineKind({
  group: "gallery.coracle.dev",
  version: "v1",
  kind: "Exemption",
  spec: z.object({
    policies: z.array(z.enum([
      ...Object.keys(POD_POLICIES),
      ...Object.keys(SERVICE_POLICIES),
    ])),
    /** Namespace of the objects. */
    namespace: z.string(),
    /** Regular expression for the start of their names. */
    name: z.string().max(100),
  }),
});

/** Names of the policies that an object is exempt from; read from the cache. */
async function exemptFrom(
  { list, namespace }: AdmissionContext,
  { name = "", generateName }: Pod["metadata"],
): Promise<readonly string[]> {
  const all = await list(Exemption, EXEMPTIONS);
  return all.map(({ spec }) => spec).filter((spec) =>
    spec.namespace === namespace &&
    new RegExp(spec.name).test(name || generateName || "")
  ).flatMap(({ policies }) => policies);
}

/** Handlers that hold all objects of a kind to policies. */
function handlersOf<O extends Pod | Service>(
  policies: Record<string, (spec: never) => readonly Wrong[]>,
  fill: (object: O, exempt: readonly string[]) => void,
): AdmissionHandlers<O> {
  return {
    async default(object, ctx) {
      const exempt = (await exemptFrom(ctx, object.metadata))
        .filter((name) => name in policies);
      for (const name of exempt) {
        object.metadata.annotations ??= {};
        object.metadata.annotations[`${MARK}/${name}`] = "exempted";
      }
      fill(object, exempt);
      return object;
    },
    async validate(object, ctx) {
      const exempt = await exemptFrom(ctx, object.metadata);
      const causes = Object.entries(policies)
        .filter(([name]) => !exempt.includes(name))
        .flatMap(([name, wrongOf]) =>
          wrongOf((object.spec ?? {}) as never).map(([field, text]) => ({
            field,
            message: `${text} (${name})`,
          }))
        );
      if (causes.length === 0) return undefined;
      return deny("it breaks policies", { causes });
    },
  };
}

/** What pods leave open of user and privileges; labels choose the user. */
function fillPod({ metadata, spec }: Pod, exempt: readonly string[]): void {
  if (!spec) return;
  if (!exempt.includes("NonRoot")) {
    const own = spec.securityContext ??= {};
    const label = (name: string) =>
      Number(metadata.labels?.[`${MARK}/${name}`]) || undefined;
    own.runAsNonRoot ??= true;
    own.runAsUser = label("user") ?? own.runAsUser ?? 1000;
    own.runAsGroup = label("group") ?? own.runAsGroup ?? 1000;
    const group = label("fsgroup") ?? own.fsGroup;
    if (group !== undefined) own.fsGroup = group;
  }
  for (const [, container] of containersOf(spec)) {
    const context = container.securityContext ??= {};
    const { privileged, capabilities } = context;
    const isBound = privileged || capabilities?.add?.includes("CAP_SYS_ADMIN");
    if (!exempt.includes("Privileged") && !isBound) {
      context.allowPrivilegeEscalation ??= false;
    }
    if (exempt.includes("DropCapabilities")) continue;
    context.capabilities = { ...capabilities, drop: ["ALL"] };
  }
}

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator({
    probes: { port: 8080 },
    webhooks: { service: { name: "pod-security" } },
    ...options,
  });
  // Its cache is what the handlers read.
  operator.register(Exemption, { reconcile() {} }, { install: true });
  const failurePolicy = "Fail";
  operator.admit(Pod, handlersOf<Pod>(POD_POLICIES, fillPod), {
    failurePolicy,
  });
  operator.admit(Service, handlersOf<Service>(SERVICE_POLICIES, () => {}), {
    failurePolicy,
  });
  return operator;
}

if (import.meta.main) await operator().run();
