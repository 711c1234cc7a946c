import { Quantity, type UntypedObject } from "@coracle/operator/client";

// deno-lint-ignore no-explicit-any -- built-in objects, which are decoded
type Any = any;

/** Labels of nodes that others replace, with the version that deprecated them. */
const OLD_LABELS: ReadonlyMap<string, readonly [since: string, use: string]> =
  new Map([
    ["beta.kubernetes.io/arch", ["v1.14", "kubernetes.io/arch"]],
    ["beta.kubernetes.io/os", ["v1.14", "kubernetes.io/os"]],
    [
      "failure-domain.beta.kubernetes.io/region",
      ["v1.17", "topology.kubernetes.io/region"],
    ],
    [
      "failure-domain.beta.kubernetes.io/zone",
      ["v1.17", "topology.kubernetes.io/zone"],
    ],
    [
      "beta.kubernetes.io/instance-type",
      ["v1.17", "node.kubernetes.io/instance-type"],
    ],
  ]);

/** Volumes that no longer work. */
const OLD_VOLUMES: readonly (readonly [field: string, text: string])[] = [
  ["cephfs", "cephfs: deprecated in v1.28, non-functional in v1.31+"],
  ["glusterfs", "glusterfs: deprecated in v1.25, non-functional in v1.26+"],
  ["rbd", "rbd: deprecated in v1.28, non-functional in v1.31+"],
  ["storageos", "storageOS: deprecated in v1.22, non-functional in v1.25+"],
];

const SECCOMP =
  'non-functional in v1.27+; use the "seccompProfile" field instead';

/** Beginnings of annotations of pods that fields replace. */
const OLD_ANNOTATIONS: readonly (readonly [name: string, text: string])[] = [
  [
    "container.apparmor.security.beta.kubernetes.io/",
    'deprecated since v1.30; use the "appArmorProfile" field instead',
  ],
  ["container.seccomp.security.alpha.kubernetes.io/", SECCOMP],
  ["seccomp.security.alpha.kubernetes.io/pod", SECCOMP],
];
const NO_POD = "a null labelSelector results in matching no pod";

/** Where kinds have their pod templates. */
const TEMPLATES: ReadonlyMap<string, string> = new Map([
  ["CronJob", "spec.jobTemplate.spec.template"],
  ["DaemonSet", "spec.template"],
  ["Deployment", "spec.template"],
  ["Job", "spec.template"],
  ["PodTemplate", "template"],
  ["ReplicaSet", "spec.template"],
  ["ReplicationController", "spec.template"],
  ["StatefulSet", "spec.template"],
]);

/** Warnings of kinds beside those of their pods. */
const OTHERS: ReadonlyMap<string, (object: Any) => readonly string[]> = new Map(
  [
    [
      "Ingress",
      ({ metadata }) =>
        metadata.annotations?.["kubernetes.io/ingress.class"] === undefined
          ? []
          : [
            "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead",
          ],
    ],
    ["PersistentVolumeClaim", claimWarnings],
    ["Pod", podNameWarnings],
    [
      "Service",
      ({ spec }) =>
        spec.clusterIP === "None" && spec.sessionAffinity === "ClientIP"
          ? ["spec.SessionAffinity is ignored for headless services"]
          : [],
    ],
    ["StatefulSet", ({ spec }) =>
      spec.revisionHistoryLimit < 0
        ? [
          "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended",
        ]
        : []],
  ],
);

/**
 * Warnings of kube-apiserver for a valid object of a built-in kind: about its pods
 * when it is created, and when its generation changes.
 *
 * @param live The object before an update.
 */
export function objectWarnings(
  object: UntypedObject,
  live?: UntypedObject,
): readonly string[] {
  const { kind = "", metadata } = object;
  const template = TEMPLATES.get(kind);
  if (
    live !== undefined &&
    (template === undefined || live.metadata.generation === metadata.generation)
  ) return [];
  const own = OTHERS.get(kind)?.(object) ?? [];
  if (kind === "Pod") return [...podWarnings(object, ""), ...own];
  if (template === undefined) return own;
  const pod = template.split(".").reduce(
    (value: Any, name) => value?.[name],
    object,
  );
  return [...podWarnings(pod ?? {}, `${template}.`), ...own];
}

function podNameWarnings({ metadata: { name } }: Any): string[] {
  const why = [
    ...name.length > 63 ? ["must be no more than 63 characters"] : [],
    ...name.includes(".") ? ["must not contain dots"] : [],
  ];
  return why.length === 0 ? [] : [
    `metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [${
      why.join(" ")
    }]`,
  ];
}

function claimWarnings({ metadata, spec }: Any): string[] {
  const old = "volume.beta.kubernetes.io/storage-class";
  return [
    ...metadata.annotations?.[old] === undefined ? [] : [
      `metadata.annotations[${old}]: deprecated since v1.8; use "storageClassName" attribute instead`,
    ],
    ...fractions(spec.resources ?? {}, "spec.resources", ["storage"]),
  ];
}

/** Warnings about a pod or a template; paths of its fields begin with `at`. */
function podWarnings({ metadata = {}, spec = {} }: Any, at: string): string[] {
  const path = `${at}spec`;
  return [
    ...schedulingWarnings(spec, path),
    ...Object.keys(metadata.annotations ?? {}).flatMap((name) => {
      const [, text] = OLD_ANNOTATIONS.find(([old]) => name.startsWith(old)) ??
        [];
      return text ? [`${at}metadata.annotations[${name}]: ${text}`] : [];
    }),
    ...listed(spec.volumes).flatMap(([index, volume]) =>
      OLD_VOLUMES.filter(([field]) => volume[field] !== undefined)
        .map(([, text]) => `${path}.volumes[${index}].${text}`)
    ),
    ...repeated(spec.imagePullSecrets, `${path}.imagePullSecrets`, "name"),
    ...repeated(spec.hostAliases, `${path}.hostAliases`, "ip"),
    ...["initContainers", "containers"].flatMap((list) =>
      listed(spec[list]).flatMap(([index, container]) =>
        containerWarnings(container, `${path}.${list}[${index}]`)
      )
    ),
    ...portWarnings(spec.containers, `${path}.containers`),
  ];
}

function listed(list: Any): [number, Any][] {
  return [...(list ?? []).entries()];
}

/** Items whose name is empty, or that of an item before them. */
function repeated(list: Any, path: string, field: string): string[] {
  const seen = new Set<string>();
  return listed(list).flatMap(([index, { [field]: name = "" }]) => {
    const what = seen.has(name)
      ? `duplicate ${field}`
      : name === ""
      ? `invalid empty ${field}`
      : undefined;
    seen.add(name);
    return what ? [`${path}[${index}].${field}: ${what} "${name}"`] : [];
  });
}

function oldLabel(key: string): string | undefined {
  const [since, use] = OLD_LABELS.get(key) ?? [];
  return since && `deprecated since ${since}; use "${use}" instead`;
}

function schedulingWarnings(spec: Any, path: string): string[] {
  const warnings: string[] = [];
  const key = (at: string, key: string) => {
    const old = oldLabel(key);
    if (old !== undefined) warnings.push(`${at}: ${key} is ${old}`);
  };
  for (const name of Object.keys(spec.nodeSelector ?? {})) {
    const old = oldLabel(name);
    if (old !== undefined) {
      warnings.push(`${path}.nodeSelector[${name}]: ${old}`);
    }
  }
  const { nodeAffinity, ...pods } = spec.affinity ?? {};
  const required = "requiredDuringSchedulingIgnoredDuringExecution";
  const preferred = "preferredDuringSchedulingIgnoredDuringExecution";
  const expressions = (term: Any, at: string) => {
    for (const [index, one] of listed(term?.matchExpressions)) {
      key(`${at}.matchExpressions[${index}].key`, one.key);
    }
  };
  const nodes = `${path}.affinity.nodeAffinity`;
  for (
    const [index, term] of listed(nodeAffinity?.[required]?.nodeSelectorTerms)
  ) expressions(term, `${nodes}.${required}.nodeSelectorTerms[${index}]`);
  for (const [index, { preference }] of listed(nodeAffinity?.[preferred])) {
    expressions(preference, `${nodes}.${preferred}[${index}].preference`);
  }
  for (const [name, affinity] of Object.entries<Any>(pods)) {
    const at = `${path}.affinity.${name}`;
    for (const [index, term] of listed(affinity[required])) {
      if (term.labelSelector) continue;
      warnings.push(`${at}.${required}[${index}].labelSelector: ${NO_POD}`);
    }
    for (const [index, term] of listed(affinity[preferred])) {
      if (term.podAffinityTerm?.labelSelector) continue;
      warnings.push(
        `${at}.${preferred}[${index}].podAffinityTerm.labelSelector: ${NO_POD}`,
      );
    }
  }
  for (const [index, one] of listed(spec.topologySpreadConstraints)) {
    const at = `${path}.topologySpreadConstraints[${index}]`;
    key(`${at}.topologyKey`, one.topologyKey);
    if (!one.labelSelector) warnings.push(`${at}.labelSelector: ${NO_POD}`);
  }
  return warnings;
}

function containerWarnings(container: Any, path: string): string[] {
  const seen = new Set<string>();
  const hidden: string[] = [];
  for (const [index, { name, value = "" }] of listed(container.env)) {
    if (seen.has(name) && !value.includes(`$(${name})`)) {
      hidden.push(
        `${path}.env[${index}]: hides previous definition of "${name}", which may be dropped when using apply`,
      );
    }
    seen.add(name);
  }
  return [
    ...fractions(container.resources ?? {}, `${path}.resources`, [
      "memory",
      "ephemeral-storage",
    ]),
    ...hidden,
  ];
}

function fractions(
  resources: Any,
  path: string,
  names: readonly string[],
): string[] {
  return ["limits", "requests"].flatMap((list) =>
    names.filter((name) => {
      const text = resources[list]?.[name];
      return text !== undefined &&
        Quantity.parse(text).nano % 1_000_000_000n !== 0n;
    }).map((name) =>
      `${path}.${list}[${name}]: fractional byte value "${
        Quantity.parse(resources[list][name])
      }" is invalid, must be an integer`
    )
  );
}

/** Ports of containers that are also ports of containers before them. */
function portWarnings(containers: Any, path: string): string[] {
  const before: { readonly port: Any; readonly at: string }[] = [];
  const warnings: string[] = [];
  for (const [container, { ports }] of listed(containers)) {
    for (const [index, port] of listed(ports)) {
      const at = `${path}[${container}].ports[${index}]`;
      for (const other of before) {
        const what = overlap(port, other.port);
        if (what === undefined) continue;
        warnings.push(`${at}: ${what} port definition with ${other.at}`);
      }
      before.push({ port, at });
    }
  }
  return warnings;
}

function overlap(a: Any, b: Any): string | undefined {
  if (a.containerPort !== b.containerPort || a.protocol !== b.protocol) {
    return undefined;
  }
  const [port = 0, other = 0] = [a.hostPort, b.hostPort];
  if (port === 0 && other === 0) return "duplicate";
  if (port === 0 || other === 0) return "overlapping";
  if (port !== other) return undefined;
  const [ip = "", otherIp = ""] = [a.hostIP, b.hostIP];
  if (ip === otherIp) return "duplicate";
  return ip === "" || otherIp === "" ? "dangerously ambiguous" : undefined;
}
