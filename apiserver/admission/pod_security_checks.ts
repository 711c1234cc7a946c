/**
 * Checks of the Pod Security Standards, by the rules of the newest policy version.
 * Loaded when the first namespace asks for a policy.
 *
 * @module
 */
import type { ObjectMeta } from "../../core/api/object.ts";
import type {
  Container,
  PodSecurityContext,
  PodSpec,
  SecurityContext,
} from "../../core/kinds/core_v1.ts";

/** Violation of a check. */
export interface Violation {
  readonly reason: string;
  readonly detail: string;
}

/** Level and version of a policy; the version is a minor, or infinite for `latest`. */
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
  /** Reason, and detail of a violation. */
  readonly run: (
    spec: PodSpec,
    metadata: ObjectMeta,
    version: number,
  ) => readonly [reason: string, detail: string] | undefined;
}

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
  return checks.flatMap(({ run }) => {
    const found = run(spec, metadata, version);
    return found === undefined ? [] : [{ reason: found[0], detail: found[1] }];
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

/** Containers with bad values, and the values. */
function badContainers(
  spec: PodSpec,
  bad: (container: Container) => readonly string[],
): { names: string[]; values: string[] } | undefined {
  const names: string[] = [];
  const values: string[] = [];
  for (const container of containersOf(spec)) {
    const found = bad(container);
    if (found.length === 0) continue;
    names.push(container.name);
    values.push(...found);
  }
  return names.length === 0 ? undefined : { names, values: sorted(values) };
}

/** Pod and containers whose security context has forbidden values, and the values. */
function badSetters(
  spec: PodSpec,
  bad: (context: Context) => readonly string[],
): { who: string; values: string[] } | undefined {
  const pod = bad((spec.securityContext ?? {}) as Context);
  const containers = badContainers(
    spec,
    ({ securityContext }) => bad((securityContext ?? {}) as Context),
  );
  if (pod.length === 0 && containers === undefined) return undefined;
  return {
    who: [
      ...pod.length === 0 ? [] : ["pod"],
      ...containers ? [namedList("container", containers.names)] : [],
    ].join(" and "),
    values: sorted([...pod, ...containers?.values ?? []]),
  };
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

const APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/";

/** Whether a pod has a user namespace, for which rules are relaxed since 1.35. */
function isRelaxed({ hostUsers }: PodSpec, version: number): boolean {
  return hostUsers === false && version >= 35;
}

function isWindows({ os }: PodSpec): boolean {
  return os?.name === "windows";
}

const procMount: Check["run"] = (spec) => {
  const bad = badContainers(
    spec,
    ({ securityContext }) => unless(["Default"], securityContext?.procMount),
  );
  return bad &&
    [
      "procMount",
      `${
        namedList("container", bad.names)
      } must not set securityContext.procMount to ${quoted(bad.values)}`,
    ];
};

const seccomp: Check["run"] = (spec) => {
  const bad = badSetters(
    spec,
    ({ seccompProfile }) => unless(PROFILES, seccompProfile?.type),
  );
  return bad && [
    "seccompProfile",
    `${bad.who} must not set securityContext.seccompProfile.type to ${
      quoted(bad.values)
    }`,
  ];
};

function addedCapabilities(
  spec: PodSpec,
  allowed: readonly string[],
): string | undefined {
  const bad = badContainers(
    spec,
    ({ securityContext }) =>
      (securityContext?.capabilities?.add ?? []).flatMap((name) =>
        unless(allowed, name)
      ),
  );
  return bad &&
    `${namedList("container", bad.names)} must not include ${
      quoted(bad.values)
    } in securityContext.capabilities.add`;
}

/** Baseline checks, sorted by ID as kube-apiserver reports them. */
const BASELINE: readonly Check[] = [
  {
    id: "appArmorProfile",
    run(spec, { annotations = {} }) {
      const bad = badSetters(
        spec,
        ({ appArmorProfile }) => unless(PROFILES, appArmorProfile?.type),
      );
      const notes = Object.entries(annotations).filter(([key, value]) =>
        key.startsWith(APP_ARMOR) &&
        !/^$|^runtime\/default$|^localhost\//.test(value)
      ).map(([key, value]) => `${key}=${JSON.stringify(value)}`).sort();
      if (!bad && notes.length === 0) return undefined;
      const values = [...bad?.values ?? [], ...notes];
      const who = [
        ...bad ? [bad.who] : [],
        ...notes.length > 0 ? [counted("annotation", notes)] : [],
      ].join(" and ");
      return [
        counted("forbidden AppArmor profile", values),
        `${who} must not set AppArmor profile type to ${quoted(values)}`,
      ];
    },
  },
  {
    id: "capabilities_baseline",
    run(spec) {
      const detail = addedCapabilities(spec, CAPABILITIES);
      return detail === undefined
        ? undefined
        : ["non-default capabilities", detail];
    },
  },
  {
    id: "hostNamespaces",
    run(spec) {
      const set = (["hostNetwork", "hostPID", "hostIPC"] as const)
        .filter((field) => spec[field]).map((field) => `${field}=true`);
      return set.length === 0 ? undefined : ["host namespaces", set.join(", ")];
    },
  },
  {
    id: "hostPathVolumes",
    run({ volumes = [] }) {
      const names = volumes.filter(({ hostPath }) => hostPath)
        .map(({ name }) => name);
      return names.length === 0
        ? undefined
        : ["hostPath volumes", namedList("volume", names)];
    },
  },
  {
    id: "hostPorts",
    run(spec) {
      const bad = badContainers(
        spec,
        ({ ports = [] }) =>
          ports.flatMap(({ hostPort }) => hostPort ? [String(hostPort)] : []),
      );
      return bad &&
        [
          "hostPort",
          `${namedList("container", bad.names)} ${
            bad.names.length === 1 ? "uses" : "use"
          } ${counted("hostPort", bad.values)} ${bad.values.join(", ")}`,
        ];
    },
  },
  {
    id: "hostProbesAndHostLifecycle",
    since: 34,
    run(spec) {
      const bad = badContainers(spec, (container) =>
        [
          container.livenessProbe,
          container.readinessProbe,
          container.startupProbe,
          container.lifecycle?.postStart,
          container.lifecycle?.preStop,
        ].flatMap((handler) =>
          [handler?.httpGet?.host, handler?.tcpSocket?.host]
            .flatMap((host) => host ? [host] : [])
        ));
      return bad &&
        [
          "probe or lifecycle host",
          `${namedList("container", sorted(bad.names))} ${
            bad.names.length === 1 ? "uses" : "use"
          } ${namedList("probe or lifecycle host", bad.values)}`,
        ];
    },
  },
  {
    id: "privileged",
    run(spec) {
      const bad = badContainers(
        spec,
        ({ securityContext }) => securityContext?.privileged ? ["true"] : [],
      );
      return bad &&
        [
          "privileged",
          `${
            namedList("container", bad.names)
          } must not set securityContext.privileged=true`,
        ];
    },
  },
  {
    id: "procMount",
    run: (spec, metadata, version) =>
      isRelaxed(spec, version) ? undefined : procMount(spec, metadata, version),
  },
  {
    id: "seLinuxOptions",
    run(spec, _, version) {
      const types = ["", "container_t", "container_init_t", "container_kvm_t"];
      if (version >= 31) types.push("container_engine_t");
      const bad = badSetters(spec, ({ seLinuxOptions: options }) => [
        ...unless(types, options?.type).map((type) => `type ${type}`),
        ...options?.user ? ["user"] : [],
        ...options?.role ? ["role"] : [],
      ]);
      if (bad === undefined) return undefined;
      const badTypes = bad.values.filter((value) => value.startsWith("type "))
        .map((value) => value.slice(5));
      const problems = [
        ...badTypes.length > 0 ? [namedList("type", badTypes)] : [],
        ...["user", "role"].filter((field) => bad.values.includes(field))
          .map((field) => `${field} may not be set`),
      ];
      return [
        "seLinuxOptions",
        `${bad.who} set forbidden securityContext.seLinuxOptions: ${
          problems.join("; ")
        }`,
      ];
    },
  },
  { id: "seccompProfile_baseline", since: 19, run: seccomp },
  {
    id: "sysctls",
    run({ securityContext }, _, version) {
      const names = (securityContext?.sysctls ?? []).map(({ name }) => name)
        .filter((name) =>
          (SYSCTLS.get(name) ?? Infinity) > version ||
          !SYSCTLS.has(name)
        );
      return names.length === 0
        ? undefined
        : ["forbidden sysctls", names.join(", ")];
    },
  },
  {
    id: "windowsHostProcess",
    run(spec) {
      const bad = badSetters(
        spec,
        ({ windowsOptions }) => windowsOptions?.hostProcess ? ["true"] : [],
      );
      return bad && [
        "hostProcess",
        `${bad.who} must not set securityContext.windowsOptions.hostProcess=true`,
      ];
    },
  },
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

/** Restricted checks, sorted by ID. */
const RESTRICTED: readonly Check[] = [
  {
    id: "allowPrivilegeEscalation",
    since: 8,
    run(spec, _, version) {
      if (isWindows(spec) && version >= 25) return undefined;
      const bad = badContainers(
        spec,
        ({ securityContext }) =>
          securityContext?.allowPrivilegeEscalation === false ? [] : ["true"],
      );
      return bad &&
        [
          "allowPrivilegeEscalation != false",
          `${
            namedList("container", bad.names)
          } must set securityContext.allowPrivilegeEscalation=false`,
        ];
    },
  },
  {
    id: "capabilities_restricted",
    since: 22,
    replaces: "capabilities_baseline",
    run(spec, _, version) {
      if (isWindows(spec) && version >= 25) return undefined;
      const kept = badContainers(
        spec,
        ({ securityContext }) =>
          securityContext?.capabilities?.drop?.includes("ALL") ? [] : ["ALL"],
      );
      const added = addedCapabilities(spec, ["NET_BIND_SERVICE"]);
      const details = [
        ...kept
          ? [
            `${
              namedList("container", kept.names)
            } must set securityContext.capabilities.drop=["ALL"]`,
          ]
          : [],
        ...added === undefined ? [] : [added],
      ];
      return details.length === 0
        ? undefined
        : ["unrestricted capabilities", details.join("; ")];
    },
  },
  {
    id: "procMount_restricted",
    since: 35,
    replaces: "procMount",
    run: procMount,
  },
  {
    id: "restrictedVolumes",
    replaces: "hostPathVolumes",
    run({ volumes = [] }) {
      const bad = volumes.filter((volume) =>
        !VOLUME_TYPES.some((type) => Object.hasOwn(volume, type))
      );
      if (bad.length === 0) return undefined;
      const types = sorted(
        bad.map((volume) =>
          Object.keys(volume).find((key) => key !== "name") ?? "unknown"
        ),
      );
      return [
        "restricted volume types",
        `${namedList("volume", bad.map(({ name }) => name))} ${
          bad.length === 1 ? "uses" : "use"
        } ${namedList("restricted volume type", types)}`,
      ];
    },
  },
  {
    id: "runAsNonRoot",
    run(spec, _, version) {
      if (isRelaxed(spec, version)) return undefined;
      const reason = "runAsNonRoot != true";
      const bad = badSetters(
        spec,
        ({ runAsNonRoot }) => runAsNonRoot === false ? ["false"] : [],
      );
      if (bad) {
        return [
          reason,
          `${bad.who} must not set securityContext.runAsNonRoot=false`,
        ];
      }
      if (spec.securityContext?.runAsNonRoot) return undefined;
      const silent = badContainers(
        spec,
        ({ securityContext }) => securityContext?.runAsNonRoot ? [] : [""],
      );
      return silent &&
        [
          reason,
          `pod or ${
            namedList("container", silent.names)
          } must set securityContext.runAsNonRoot=true`,
        ];
    },
  },
  {
    id: "runAsUser",
    since: 23,
    run(spec, _, version) {
      if (isRelaxed(spec, version)) return undefined;
      const bad = badSetters(
        spec,
        ({ runAsUser }) => runAsUser === 0 ? ["0"] : [],
      );
      return bad && ["runAsUser=0", `${bad.who} must not set runAsUser=0`];
    },
  },
  {
    id: "seccompProfile_restricted",
    since: 19,
    replaces: "seccompProfile_baseline",
    run(spec, metadata, version) {
      if (isWindows(spec) && version >= 25) return undefined;
      const bad = seccomp(spec, metadata, version);
      if (bad || spec.securityContext?.seccompProfile) return bad;
      const silent = badContainers(
        spec,
        ({ securityContext }) => securityContext?.seccompProfile ? [] : [""],
      );
      return silent &&
        [
          "seccompProfile",
          `pod or ${
            namedList("container", silent.names)
          } must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`,
        ];
    },
  },
];
