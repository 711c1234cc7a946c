import type { Step } from "../transcripts/transcript.ts";
import type { RequestCase, RequestLine } from "./comparison.ts";

const CORE = "/api/v1/namespaces/NS";
const PODS = `${CORE}/pods`;
const CLAIMS = `${CORE}/persistentvolumeclaims`;
const MERGE = {
  headers: { "content-type": "application/merge-patch+json" },
};
/** A change whose warnings name the pods that were seen, in any order. */
const UNORDERED = { ...MERGE, ignoreHeaders: ["warning"] };

function pod(name: string, spec: object = {}, resources?: object): object {
  return {
    metadata: { name },
    spec: {
      automountServiceAccountToken: false,
      containers: [{ name: "c", image: "i", resources }],
      ...spec,
    },
  };
}

function claim(name: string, storage: string, spec: object = {}): object {
  return {
    metadata: { name },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage } },
      ...spec,
    },
  };
}

function limits(name: string, ...items: object[]): RequestLine {
  return [`POST ${CORE}/limitranges`, {
    metadata: { name },
    spec: { limits: items },
  }];
}

/** Creates a quota and waits until its status is known. */
function quota(name: string, hard: object, spec: object = {}): RequestLine[] {
  const path = `${CORE}/resourcequotas`;
  return [
    [`POST ${path}`, { metadata: { name }, spec: { hard, ...spec } }],
    known(name),
  ];
}

function known(
  name: string,
  resource?: string,
  equals?: string,
): RequestLine {
  return {
    id: `q-${name}-${crypto.randomUUID()}`,
    poll: `${CORE}/resourcequotas/${name}`,
    until: resource === undefined
      ? { status: 200, path: "status.hard", exists: true }
      : { status: 200, path: `status.used.${resource}`, equals },
    compare: "full",
    pick: ["spec", "status"],
  };
}

/**
 * The requests, without what depends on when a controller writes, or at random.
 */
function settled(requests: readonly RequestLine[]): RequestLine[] {
  return requests.map((request) => {
    if (!Array.isArray(request)) return request;
    const [line, body, more = {}] = request;
    return [line, body, {
      ...more,
      ignore: [
        "metadata.resourceVersion",
        "metadata.managedFields",
        "spec.clusterIP",
        "spec.clusterIPs",
      ],
    }];
  });
}

function labelled(mode: string, value: string): object {
  const labels = { [`pod-security.kubernetes.io/${mode}`]: value };
  return { metadata: { labels } };
}

/**
 * Waits until the labels of the namespace are enforced: kube-apiserver sees them
 * a moment after their change.
 *
 * @param violation Pod that they refuse.
 */
function enforced(violation: object): Step {
  return {
    id: "",
    method: "POST",
    poll: `${PODS}?dryRun=All`,
    body: violation,
    until: { status: 403 },
    compare: "none",
  };
}

/**
 * Repeats a request without storing its result until the answer is as expected:
 * kube-apiserver sees a changed node or class a moment after its change.
 */
function awaited(
  [line, body, more]: readonly [string, unknown, Partial<Step>],
  until: NonNullable<Step["until"]>,
): Step {
  const [method = "", path = ""] = line.split(" ");
  return {
    id: "",
    method,
    poll: `${path}?dryRun=All`,
    body,
    ...more,
    until,
    compare: "none",
  };
}

/** Pod specs that violate a policy. */
const INSECURE: readonly object[] = [
  { hostNetwork: true, hostPID: true, hostIPC: true },
  {
    volumes: [{ name: "v", hostPath: { path: "/" } }, {
      name: "n",
      nfs: { server: "s", path: "/" },
    }],
  },
  {
    containers: ["c", "d"].map((name, index) => ({
      name,
      image: "i",
      ports: [{ containerPort: 8, hostPort: 8 + index }],
      securityContext: {
        capabilities: { add: ["SYS_ADMIN", "CHOWN"] },
        seLinuxOptions: { type: "x", user: "u", role: "r" },
        runAsUser: 0,
      },
    })),
  },
  {
    securityContext: {
      seccompProfile: { type: "Unconfined" },
      runAsNonRoot: false,
      runAsUser: 0,
      sysctls: [{ name: "kernel.sem", value: "1" }, {
        name: "net.ipv4.tcp_rmem",
        value: "1",
      }],
    },
  },
  {
    initContainers: [{
      name: "i",
      image: "i",
      securityContext: {
        runAsNonRoot: false,
        seccompProfile: { type: "Unconfined" },
        capabilities: { drop: ["ALL"] },
        allowPrivilegeEscalation: false,
      },
    }],
  },
];

const SECURE: object = {
  securityContext: {
    runAsNonRoot: true,
    seccompProfile: { type: "RuntimeDefault" },
  },
  containers: [{
    name: "c",
    image: "i",
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
    },
  }],
};

/** Pod that any node takes, bound to a node. */
function bound(
  name: string,
  nodeName: string | undefined,
  spec: object,
): RequestLine {
  const tolerations = [{ operator: "Exists" }];
  return [`POST ${PODS}`, pod(name, { nodeName, tolerations, ...spec })];
}

function sized(requests: object, more: object = {}): object {
  return { name: "c", image: "i", resources: { requests }, ...more };
}

function resized(
  name: string,
  spec: object,
): readonly [string, unknown, Partial<Step>] {
  const headers = { "content-type": "application/strategic-merge-patch+json" };
  return [`PATCH ${PODS}/${name}/resize`, { spec }, { headers }];
}

/** Container of the name c with other requests. */
function requesting(requests: object): object {
  return { containers: [{ name: "c", resources: { requests } }] };
}

const SMALL = { cpu: "1", memory: "500Mi" };
/** Resize of an initial container, which not every node can do. */
const INITIAL_RESIZE = resized("i", {
  initContainers: [{ name: "i", resources: { requests: { cpu: "1200m" } } }],
});
/** Updates of `pods/resize`. */
const RESIZES: readonly RequestLine[] = [
  ["POST /api/v1/nodes", { metadata: { name: "NS" } }],
  ["POST /api/v1/nodes", {
    metadata: { name: "NS-w", labels: { "kubernetes.io/os": "windows" } },
  }],
  ["PATCH /api/v1/nodes/NS/status", {
    status: { allocatable: { cpu: "2", memory: "1Gi" } },
  }, MERGE],
  bound("a", "NS", { containers: [sized(SMALL)] }),
  bound("w", "NS-w", { containers: [sized(SMALL)] }),
  bound("n", "NS-none", { containers: [sized(SMALL)] }),
  bound("u", undefined, { containers: [sized(SMALL)] }),
  bound("g", "NS", {
    containers: [sized(SMALL, { resources: { limits: SMALL } })],
  }),
  bound("i", "NS", {
    containers: [{ name: "c", image: "i" }],
    initContainers: [
      sized(SMALL, { name: "i" }),
      sized(SMALL, { name: "s", restartPolicy: "Always" }),
    ],
  }),
  awaited(resized("a", requesting({ cpu: "1500m" })), { status: 200 }),
  ...["a", "w", "n", "u"].flatMap((name) => [
    resized(name, requesting({ cpu: "1500m" })),
    resized(name, requesting({ cpu: "3500m", memory: "2Gi" })),
  ]),
  resized("g", requesting({ cpu: "900m" })),
  resized("a", requesting({ cpu: null })),
  resized("a", requesting({ "example.org/x": "1" })),
  resized("a", { containers: [{ name: "c", image: "other" }] }),
  resized("a", { containers: [{ name: "d", image: "i" }] }),
  resized("a", { resources: { requests: { cpu: "1600m" } } }),
  INITIAL_RESIZE,
  resized("i", {
    initContainers: [{ name: "s", resources: { requests: { cpu: "1100m" } } }],
  }),
  ["PATCH /api/v1/nodes/NS/status", {
    status: { declaredFeatures: ["InPlacePodVerticalScalingInitContainers"] },
  }, MERGE],
  awaited(INITIAL_RESIZE, { status: 200 }),
  INITIAL_RESIZE,
  // No kubelet ends them.
  [`DELETE ${PODS}?gracePeriodSeconds=0`, undefined, { cleanup: true }],
  ["DELETE /api/v1/nodes/NS", undefined, { cleanup: true }],
  ["DELETE /api/v1/nodes/NS-w", undefined, { cleanup: true }],
];

/** Update by which a claim asks for more storage. */
const GROWN_CLAIM: readonly [string, unknown, Partial<Step>] = [
  `PATCH ${CLAIMS}/a`,
  { spec: { resources: { requests: { storage: "2Gi" } } } },
  MERGE,
];

/** Requests that the built-in admission plug-ins change or refuse. */
export const ADMISSION_CASES: readonly RequestCase[] = [
  {
    name: "service-accounts",
    requests: [
      [`POST ${PODS}`, pod("a", { serviceAccountName: "nobody" })],
      [`POST ${PODS}`, pod("b", { automountServiceAccountToken: false })],
      // A new one: kube-apiserver asks for accounts that its cache lacks, but
      // sees a change of one that it knows only later.
      [`POST ${CORE}/serviceaccounts`, {
        metadata: { name: "pulling" },
        automountServiceAccountToken: false,
        imagePullSecrets: [{ name: "pull" }],
      }],
      [
        `POST ${PODS}`,
        pod("c", {
          serviceAccountName: "pulling",
          automountServiceAccountToken: undefined,
        }),
      ],
      [
        `POST ${PODS}`,
        pod("d", {
          serviceAccountName: "pulling",
          imagePullSecrets: [{ name: "own" }],
        }),
      ],
    ],
  },
  {
    name: "priorities",
    requests: [
      [`POST ${PODS}`, pod("a", { priorityClassName: "nope" })],
      [`POST ${PODS}`, pod("b", { priority: 7 })],
      [`POST ${PODS}`, pod("c", { priority: 0 })],
      [`POST ${PODS}`, pod("d", { preemptionPolicy: "Never" })],
      [
        `POST ${PODS}`,
        pod("e", { priorityClassName: "system-cluster-critical" }),
      ],
      [`PATCH ${PODS}/c`, { spec: { priority: 3 } }, MERGE],
    ],
  },
  {
    name: "limit-ranges",
    requests: [
      limits("all", {
        type: "Container",
        default: { cpu: "300m", memory: "200Mi" },
        defaultRequest: { cpu: "100m" },
        min: { cpu: "50m" },
        max: { cpu: "500m" },
        maxLimitRequestRatio: { cpu: "4" },
      }, { type: "Pod", max: { memory: "300Mi" } }),
      limits("claims", {
        type: "PersistentVolumeClaim",
        min: { storage: "1Gi" },
        max: { storage: "2Gi" },
      }),
      [`POST ${PODS}`, pod("a")],
      [`POST ${PODS}`, pod("b", {}, { requests: { cpu: "10m" } })],
      [`POST ${PODS}`, pod("c", {}, { limits: { cpu: "1" } })],
      [
        `POST ${PODS}`,
        pod("d", {}, { requests: { cpu: "50m" }, limits: { cpu: "450m" } }),
      ],
      [`POST ${PODS}`, pod("e", {}, { limits: { memory: "1Gi" } })],
      [
        `POST ${PODS}`,
        pod("f", {
          initContainers: [{ name: "i", image: "i" }],
        }),
      ],
      [`POST ${CLAIMS}`, claim("a", "500Mi")],
      [`POST ${CLAIMS}`, claim("b", "3Gi")],
      [`POST ${CLAIMS}`, claim("c", "1536Mi")],
    ],
  },
  {
    name: "quotas",
    requests: settled([
      ...quota("a", {
        "pods": "2",
        "requests.cpu": "500m",
        "limits.memory": "1Gi",
        "services": "2",
        "services.nodeports": "1",
        "secrets": "1",
        "count/configmaps": "2",
        "persistentvolumeclaims": "2",
        "requests.storage": "3Gi",
        "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
      }),
      [`POST ${PODS}`, pod("a")],
      [
        `POST ${PODS}`,
        pod("b", {}, {
          requests: { cpu: "300m" },
          limits: { memory: "300Mi" },
        }),
      ],
      known("a", "pods", "1"),
      [
        `POST ${PODS}`,
        pod("c", {}, {
          requests: { cpu: "300m" },
          limits: { memory: "800Mi" },
        }),
      ],
      [`DELETE ${PODS}/b`],
      known("a", "pods", "0"),
      [`POST ${CORE}/configmaps`, { metadata: { name: "a" } }],
      // The recount after the deletion may come before this object is seen.
      known("a", "count/configmaps", "2"),
      [`POST ${CORE}/configmaps`, { metadata: { name: "b" } }],
      [`POST ${CORE}/secrets`, { metadata: { name: "a" } }],
      [`POST ${CORE}/secrets`, { metadata: { name: "b" } }],
      [`POST ${CORE}/secrets?dryRun=All`, { metadata: { name: "c" } }],
      [`POST ${CLAIMS}`, claim("a", "2Gi")],
      [`POST ${CLAIMS}`, claim("b", "2Gi")],
      [`POST ${CLAIMS}`, claim("c", "1025Mi", { storageClassName: "gold" })],
      [`POST ${CORE}/services`, {
        metadata: { name: "a" },
        spec: { type: "ClusterIP", ports: [{ port: 80 }] },
      }],
      [`PATCH ${CORE}/services/a`, {
        spec: {
          type: "NodePort",
          ports: [{ name: "x", port: 1 }, { name: "y", port: 2 }],
        },
      }, MERGE],
      known("a", "services", "1"),
      [`PATCH ${CORE}/resourcequotas/a`, {
        spec: { hard: { secrets: "5", "count/jobs.batch": "1" } },
      }, MERGE],
      {
        id: "raised",
        poll: `${CORE}/resourcequotas/a`,
        until: { path: "status.hard.secrets", equals: "5" },
        compare: "full",
        pick: ["spec", "status"],
      },
      [`POST ${CORE}/secrets`, { metadata: { name: "b" } }],
    ]),
  },
  {
    name: "quota-scopes",
    requests: settled([
      ...quota("best", { pods: "1" }, { scopes: ["BestEffort"] }),
      ...quota("dead", { pods: "0" }, { scopes: ["Terminating"] }),
      ...quota("prio", { pods: "0", cpu: "1" }, {
        scopeSelector: {
          matchExpressions: [{
            scopeName: "PriorityClass",
            operator: "In",
            values: ["system-cluster-critical"],
          }],
        },
      }),
      [`POST ${PODS}`, pod("a")],
      [`POST ${PODS}`, pod("b")],
      [`POST ${PODS}`, pod("c", {}, { requests: { cpu: "1" } })],
      [
        `POST ${PODS}`,
        pod("d", { activeDeadlineSeconds: 5 }, { requests: { cpu: "1" } }),
      ],
      [`PATCH ${PODS}/c`, { spec: { activeDeadlineSeconds: 5 } }, MERGE],
      [
        `POST ${PODS}`,
        pod("e", { priorityClassName: "system-cluster-critical" }, {
          requests: { cpu: "1" },
        }),
      ],
      known("best", "pods", "1"),
    ]),
  },
  { name: "pod-resize", requests: RESIZES },
  {
    name: "pod-security",
    requests: [
      [`PATCH /api/v1/namespaces/NS`, labelled("enforce", "bad"), MERGE],
      [`PATCH /api/v1/namespaces/NS`, labelled("warn-version", "1.3"), MERGE],
      [`POST ${PODS}`, pod("old", { hostPID: true })],
      [
        `PATCH /api/v1/namespaces/NS`,
        labelled("enforce", "baseline"),
        UNORDERED,
      ],
      enforced(pod("probe", { hostPID: true })),
      ...INSECURE.map((spec, index): RequestLine => [
        `POST ${PODS}`,
        pod(`b${index}`, spec),
      ]),
      [`POST ${PODS}`, pod("fine")],
      [
        `PATCH /api/v1/namespaces/NS`,
        labelled("enforce", "restricted"),
        UNORDERED,
      ],
      enforced(pod("probe")),
      ...INSECURE.map((spec, index): RequestLine => [
        `POST ${PODS}`,
        pod(`r${index}`, spec),
      ]),
      [`POST ${PODS}`, pod("secure", SECURE)],
      [`PATCH ${PODS}/old`, { metadata: { labels: { a: "b" } } }, MERGE],
      [`PATCH ${PODS}/fine`, {
        spec: { containers: [{ name: "c", image: "j" }] },
      }, {
        headers: { "content-type": "application/strategic-merge-patch+json" },
      }],
      [`POST ${CORE}/replicationcontrollers`, {
        metadata: { name: "rc" },
        spec: {
          replicas: 0,
          selector: { a: "b" },
          template: {
            ...pod("x", { hostNetwork: true }),
            metadata: { labels: { a: "b" } },
          },
        },
      }],
    ],
  },
  {
    name: "runtime-classes",
    requests: [
      [`POST /apis/node.k8s.io/v1/runtimeclasses`, {
        metadata: { name: "NS" },
        handler: "h",
        overhead: { podFixed: { cpu: "100m" } },
        scheduling: {
          nodeSelector: { a: "b" },
          tolerations: [{ key: "k", operator: "Exists" }, {
            key: "node.kubernetes.io/not-ready",
            operator: "Exists",
          }],
        },
      }],
      [`POST ${PODS}`, pod("a", { runtimeClassName: "nope" })],
      [`POST ${PODS}`, pod("b", { runtimeClassName: "NS" })],
      [`POST ${PODS}`, pod("c", { overhead: { cpu: "1" } })],
      [
        `POST ${PODS}`,
        pod("d", { runtimeClassName: "NS", overhead: { cpu: "1" } }),
      ],
      [
        `POST ${PODS}`,
        pod("e", { runtimeClassName: "NS", nodeSelector: { a: "c" } }),
      ],
      [
        `POST ${PODS}`,
        pod("f", {
          runtimeClassName: "NS",
          overhead: { cpu: "0.1" },
          nodeSelector: { a: "b", c: "d" },
          tolerations: [{ key: "k", operator: "Equal", value: "v" }],
        }),
      ],
      [
        "DELETE /apis/node.k8s.io/v1/runtimeclasses/NS",
        undefined,
        { cleanup: true },
      ],
    ],
  },
  {
    name: "claims",
    requests: [
      [`POST /apis/storage.k8s.io/v1/storageclasses`, {
        metadata: {
          name: "NS",
          annotations: {
            "storageclass.kubernetes.io/is-default-class": "true",
          },
        },
        provisioner: "p",
      }],
      awaited([`POST ${CLAIMS}`, claim("a", "1Gi"), {}], {
        status: 201,
        path: "spec.storageClassName",
        equals: "NS",
      }),
      [`POST ${CLAIMS}`, claim("a", "1Gi")],
      GROWN_CLAIM,
      [`PATCH ${CLAIMS}/a/status`, { status: { phase: "Bound" } }, MERGE],
      GROWN_CLAIM,
      [
        `PATCH /apis/storage.k8s.io/v1/storageclasses/NS`,
        { allowVolumeExpansion: true },
        { ...MERGE, ignore: ["metadata.resourceVersion"] },
      ],
      // From 1.37 on a controller adds a condition, when it comes to it.
      awaited(GROWN_CLAIM, { status: 200 }),
      [GROWN_CLAIM[0], GROWN_CLAIM[1], {
        ...MERGE,
        ignore: [
          "metadata.managedFields",
          "metadata.resourceVersion",
          "status.conditions",
        ],
      }],
      ["DELETE /apis/storage.k8s.io/v1/storageclasses/NS", undefined, {
        ignore: ["metadata.resourceVersion"],
      }],
    ],
  },
];
