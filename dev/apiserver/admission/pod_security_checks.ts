/**
 * Checks of the Pod Security Standards, by the rules of the newest policy version.
 * Loaded when the first namespace asks for a policy.
 *
 * @module
 */
import type { ObjectMeta } from "@coracle/operator/client";
import type {
  Container,
  PodSecurityContext,
  PodSpec,
  SecurityContext,
} from "@coracle/operator/kinds";

/** Violation of a Pod Security check. */
export interface Violation {
  readonly reason: string;
  readonly detail: string;
}

/** Level and version of a policy; the version is a minor version, or infinite for `latest`. */
export interface LevelVersion {
  readonly level: string;
  readonly version: number;
}

interface Check {
  readonly id: string;
  /** Minor version of Kubernetes with the check; by default the first. */
  readonly since?: number;
  /** Baseline check that the restricted check replaces. */
  readonly replaces?: string;
  readonly reason: string | ((detail: string) => string);
  /** Whether the check does not apply to a pod. */
  readonly exempts?: (spec: PodSpec, version: number) => boolean;
  /** Function that returns the detail of a violation; empty without one. */
  readonly run: Run;
}

type Run = (spec: PodSpec, metadata: ObjectMeta, version: number) => string;

/** Fields that a pod and its containers have in common. */
type Context = PodSecurityContext & SecurityContext;

/** Violations of a policy by a pod. */
export function violationsOf(
  { level, version }: LevelVersion,
  spec: PodSpec,
  metadata: ObjectMeta,
): readonly Violation[] {
  const applies = ({ since = 0 }: Check) => version >= since;
  const restricted = level === "restricted" ? RESTRICTED.filter(applies) : [];
  const replaced = restricted.map(({ replaces }) => replaces);
  const checks = level === "privileged" ? [] : [
    ...BASELINE.filter((check) =>
      applies(check) && !replaced.includes(check.id)
    ),
    ...restricted,
  ];
  return checks.flatMap(({ reason, exempts, run }) => {
    const detail = exempts?.(spec, version) ? "" : run(spec, metadata, version);
    if (detail === "") return [];
    const why = typeof reason === "string" ? reason : reason(detail);
    return [{ reason: why, detail }];
  });
}

function containersOf(spec: PodSpec): readonly Container[] {
  const { initContainers = [], containers = [], ephemeralContainers = [] } =
    spec;
  return [...initContainers, ...containers, ...ephemeralContainers];
}

function quoted(values: Iterable<string>): string {
  return [...values].map((value) => `"${value}"`).join(", ");
}

function counted(noun: string, values: readonly unknown[]): string {
  return values.length === 1 ? noun : `${noun}s`;
}

function namedList(noun: string, names: readonly string[]): string {
  return `${counted(noun, names)} ${quoted(names)}`;
}

function sorted(values: Iterable<string>): string[] {
  return [...new Set(values)].sort();
}

/** Function that words a violation, given its subject, the bad values and the verb for containers. */
type Words = (who: string, values: readonly string[], uses: string) => string;

/** Creates a check of containers by the bad values of each. */
function containers(
  bad: (container: Container, version: number) => readonly string[],
  words: Words,
  order: (names: string[]) => string[] = (names) => names,
): Run {
  return (spec, _, version) => {
    const found = containersOf(spec).map((container) =>
      [container.name, bad(container, version)] as const
    ).filter(([, values]) => values.length > 0);
    return found.length === 0 ? "" : words(
      namedList("container", order(found.map(([name]) => name))),
      sorted(found.flatMap(([, values]) => values)),
      found.length === 1 ? "uses" : "use",
    );
  };
}

/** Creates a check of the security contexts of a pod and of its containers. */
function contexts(
  bad: (context: Context, version: number) => readonly string[],
  words: Words,
): Run {
  return (spec, metadata, version) => {
    const pod = bad((spec.securityContext ?? {}) as Context, version);
    let values = pod;
    const who = containers(
      ({ securityContext = {} }, version) => bad(securityContext, version),
      (who, more) => {
        values = sorted([...pod, ...more]);
        return who;
      },
    )(spec, metadata, version);
    const all = [
      ...pod.length === 0 ? [] : ["pod"],
      ...who === "" ? [] : [who],
    ];
    return all.length === 0 ? "" : words(all.join(" and "), values, "");
  };
}

/** Creates a check that the pod, or else each container, sets a field of its security context. */
function required(
  field: "runAsNonRoot" | "seccompProfile",
  value: string,
): Run {
  return (spec, metadata, version) =>
    spec.securityContext?.[field] ? "" : containers(
      ({ securityContext }) => securityContext?.[field] ? [] : [""],
      (who) => `pod or ${who} must set securityContext.${value}`,
    )(spec, metadata, version);
}

/** Creates a check that reports the first violation of several checks. */
function first(...runs: readonly Run[]): Run {
  return (...pod) =>
    runs.reduce((found, run) => found === "" ? run(...pod) : found, "");
}

function unless(
  allowed: readonly string[],
  value: string | undefined,
): string[] {
  return value === undefined || allowed.includes(value) ? [] : [value];
}

const PROFILES = ["RuntimeDefault", "Localhost"];

const CAPABILITIES =
  "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID SYS_CHROOT"
    .split(" ");

/** Allowed sysctls with the minor version that allows them. */
const SYSCTLS: ReadonlyMap<string, number> = new Map(Object.entries({
  "kernel.shm_rmid_forced": 0,
  "net.ipv4.ip_local_port_range": 0,
  "net.ipv4.tcp_syncookies": 0,
  "net.ipv4.ping_group_range": 0,
  "net.ipv4.ip_unprivileged_port_start": 0,
  "net.ipv4.ip_local_reserved_ports": 27,
  "net.ipv4.tcp_keepalive_time": 29,
  "net.ipv4.tcp_fin_timeout": 29,
  "net.ipv4.tcp_keepalive_intvl": 29,
  "net.ipv4.tcp_keepalive_probes": 29,
  "net.ipv4.tcp_rmem": 32,
  "net.ipv4.tcp_wmem": 32,
}));

const SELINUX_TYPES = [
  "",
  "container_t",
  "container_init_t",
  "container_kvm_t",
];

const VOLUME_TYPES = [
  "configMap",
  "csi",
  "downwardAPI",
  "emptyDir",
  "ephemeral",
  "image",
  "persistentVolumeClaim",
  "projected",
  "secret",
];

const APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/";

/** Whether a pod has a user namespace, for which rules are relaxed since 1.35. */
function isRelaxed({ hostUsers }: PodSpec, version: number): boolean {
  return hostUsers === false && version >= 35;
}

function isWindows({ os }: PodSpec, version: number): boolean {
  return os?.name === "windows" && version >= 25;
}

const procMount = containers(
  ({ securityContext }) => unless(["Default"], securityContext?.procMount),
  (who, values) =>
    `${who} must not set securityContext.procMount to ${quoted(values)}`,
);

const seccomp = contexts(
  ({ seccompProfile }) => unless(PROFILES, seccompProfile?.type),
  (who, values) =>
    `${who} must not set securityContext.seccompProfile.type to ${
      quoted(values)
    }`,
);

function addedCapabilities(allowed: readonly string[]): Run {
  return containers(
    ({ securityContext }) =>
      (securityContext?.capabilities?.add ?? []).flatMap((name) =>
        unless(allowed, name)
      ),
    (who, values) =>
      `${who} must not include ${
        quoted(values)
      } in securityContext.capabilities.add`,
  );
}

const keptCapabilities = containers(
  ({ securityContext }) =>
    securityContext?.capabilities?.drop?.includes("ALL") ? [] : ["ALL"],
  (who) => `${who} must set securityContext.capabilities.drop=["ALL"]`,
);

const addedNetBind = addedCapabilities(["NET_BIND_SERVICE"]);

const appArmor: Run = (spec, metadata, version) => {
  const notes = Object.entries(metadata.annotations ?? {}).filter((
    [key, value],
  ) =>
    key.startsWith(APP_ARMOR) &&
    !/^$|^runtime\/default$|^localhost\//.test(value)
  ).map(([key, value]) => `${key}=${JSON.stringify(value)}`).sort();
  let values: readonly string[] = notes;
  const who = contexts(
    ({ appArmorProfile }) => unless(PROFILES, appArmorProfile?.type),
    (who, types) => {
      values = [...types, ...notes];
      return who;
    },
  )(spec, metadata, version);
  const all = [
    ...who === "" ? [] : [who],
    ...notes.length === 0 ? [] : [counted("annotation", notes)],
  ].join(" and ");
  return all === ""
    ? ""
    : `${all} must not set AppArmor profile type to ${quoted(values)}`;
};

const seLinux = contexts(
  ({ seLinuxOptions: options }, version) => [
    ...unless(
      version >= 31 ? [...SELINUX_TYPES, "container_engine_t"] : SELINUX_TYPES,
      options?.type,
    ).map((type) => `type ${type}`),
    ...options?.user ? ["user"] : [],
    ...options?.role ? ["role"] : [],
  ],
  (who, values) => {
    const types = values.filter((value) => value.startsWith("type "))
      .map((value) => value.slice(5));
    return `${who} set forbidden securityContext.seLinuxOptions: ${
      [
        ...types.length > 0 ? [namedList("type", types)] : [],
        ...["user", "role"].filter((field) => values.includes(field))
          .map((field) => `${field} may not be set`),
      ].join("; ")
    }`;
  },
);

const restrictedVolumes: Run = ({ volumes = [] }) => {
  const bad = volumes.filter((volume) =>
    !VOLUME_TYPES.some((type) => Object.hasOwn(volume, type))
  );
  const types = sorted(
    bad.map((volume) =>
      Object.keys(volume).find((key) => key !== "name") ?? "unknown"
    ),
  );
  return bad.length === 0
    ? ""
    : `${namedList("volume", bad.map(({ name }) => name))} ${
      bad.length === 1 ? "uses" : "use"
    } ${namedList("restricted volume type", types)}`;
};

/** Hosts to which probes and lifecycle hooks of a container connect. */
function handlerHosts(
  { livenessProbe, readinessProbe, startupProbe, lifecycle }: Container,
): string[] {
  const { postStart, preStop } = lifecycle ?? {};
  return [livenessProbe, readinessProbe, startupProbe, postStart, preStop]
    .flatMap((handler) => [handler?.httpGet?.host, handler?.tcpSocket?.host])
    .flatMap((host) => host ? [host] : []);
}

/** Baseline checks, sorted by ID as kube-apiserver reports them. */
const BASELINE: readonly Check[] = [
  {
    id: "appArmorProfile",
    reason: (detail) =>
      counted("forbidden AppArmor profile", detail.split('", "')),
    run: appArmor,
  },
  {
    id: "capabilities_baseline",
    reason: "non-default capabilities",
    run: addedCapabilities(CAPABILITIES),
  },
  {
    id: "hostNamespaces",
    reason: "host namespaces",
    run: (spec) =>
      (["hostNetwork", "hostPID", "hostIPC"] as const)
        .filter((field) => spec[field]).map((field) => `${field}=true`)
        .join(", "),
  },
  {
    id: "hostPathVolumes",
    reason: "hostPath volumes",
    run: ({ volumes = [] }) => {
      const names = volumes.filter(({ hostPath }) => hostPath)
        .map(({ name }) => name);
      return names.length === 0 ? "" : namedList("volume", names);
    },
  },
  {
    id: "hostPorts",
    reason: "hostPort",
    run: containers(
      ({ ports = [] }) =>
        ports.flatMap(({ hostPort }) => hostPort ? [String(hostPort)] : []),
      (who, values, uses) =>
        `${who} ${uses} ${counted("hostPort", values)} ${values.join(", ")}`,
    ),
  },
  {
    id: "hostProbesAndHostLifecycle",
    since: 34,
    reason: "probe or lifecycle host",
    run: containers(
      handlerHosts,
      (who, values, uses) =>
        `${who} ${uses} ${namedList("probe or lifecycle host", values)}`,
      sorted,
    ),
  },
  {
    id: "privileged",
    reason: "privileged",
    run: containers(
      ({ securityContext }) => securityContext?.privileged ? ["true"] : [],
      (who) => `${who} must not set securityContext.privileged=true`,
    ),
  },
  { id: "procMount", reason: "procMount", exempts: isRelaxed, run: procMount },
  { id: "seLinuxOptions", reason: "seLinuxOptions", run: seLinux },
  {
    id: "seccompProfile_baseline",
    since: 19,
    reason: "seccompProfile",
    run: seccomp,
  },
  {
    id: "sysctls",
    reason: "forbidden sysctls",
    run: ({ securityContext }, _, version) =>
      (securityContext?.sysctls ?? []).map(({ name }) => name)
        .filter((name) => !((SYSCTLS.get(name) ?? NaN) <= version))
        .join(", "),
  },
  {
    id: "windowsHostProcess",
    reason: "hostProcess",
    run: contexts(
      ({ windowsOptions }) => windowsOptions?.hostProcess ? ["true"] : [],
      (who) =>
        `${who} must not set securityContext.windowsOptions.hostProcess=true`,
    ),
  },
];

/** Restricted checks, sorted by ID. */
const RESTRICTED: readonly Check[] = [
  {
    id: "allowPrivilegeEscalation",
    since: 8,
    reason: "allowPrivilegeEscalation != false",
    exempts: isWindows,
    run: containers(
      ({ securityContext }) =>
        securityContext?.allowPrivilegeEscalation === false ? [] : ["true"],
      (who) => `${who} must set securityContext.allowPrivilegeEscalation=false`,
    ),
  },
  {
    id: "capabilities_restricted",
    since: 22,
    replaces: "capabilities_baseline",
    reason: "unrestricted capabilities",
    exempts: isWindows,
    run: (...pod) =>
      [keptCapabilities(...pod), addedNetBind(...pod)].filter(Boolean)
        .join("; "),
  },
  {
    id: "procMount_restricted",
    since: 35,
    replaces: "procMount",
    reason: "procMount",
    run: procMount,
  },
  {
    id: "restrictedVolumes",
    replaces: "hostPathVolumes",
    reason: "restricted volume types",
    run: restrictedVolumes,
  },
  {
    id: "runAsNonRoot",
    reason: "runAsNonRoot != true",
    exempts: isRelaxed,
    run: first(
      contexts(
        ({ runAsNonRoot }) => runAsNonRoot === false ? ["false"] : [],
        (who) => `${who} must not set securityContext.runAsNonRoot=false`,
      ),
      required("runAsNonRoot", "runAsNonRoot=true"),
    ),
  },
  {
    id: "runAsUser",
    since: 23,
    reason: "runAsUser=0",
    exempts: isRelaxed,
    run: contexts(
      ({ runAsUser }) => runAsUser === 0 ? ["0"] : [],
      (who) => `${who} must not set runAsUser=0`,
    ),
  },
  {
    id: "seccompProfile_restricted",
    since: 19,
    replaces: "seccompProfile_baseline",
    reason: "seccompProfile",
    exempts: isWindows,
    run: first(
      seccomp,
      required(
        "seccompProfile",
        'seccompProfile.type to "RuntimeDefault" or "Localhost"',
      ),
    ),
  },
];
