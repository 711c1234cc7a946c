import { withTestCluster } from "@coracle/dev";
import { untyped } from "@coracle/operator";
import {
  type Container,
  Namespace,
  Pod,
  type PodSpec,
  Service,
} from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import { test } from "node:test";
import { operator } from "./pod_security.ts";

const Exemption = untyped({
  group: "gallery.coracle.dev",
  version: "v1",
  kind: "Exemption",
  plural: "exemptions",
  scope: "Namespaced",
});

const context = (securityContext: Container["securityContext"]) => ({
  containers: [{ name: "main", image: "shop", securityContext }],
});

/** A spec that each policy refuses, and it alone. */
const REFUSED: Readonly<Record<string, Partial<PodSpec>>> = {
  HostNamespaces: { hostPID: true },
  HostPorts: {
    containers: [{
      name: "main",
      image: "shop",
      ports: [{ containerPort: 80, hostPort: 80 }],
    }],
  },
  VolumeTypes: { volumes: [{ name: "host", hostPath: { path: "/var" } }] },
  Privileged: context({ privileged: true }),
  NonRoot: { securityContext: { runAsUser: 0 } },
  ProcMount: context({ procMount: "Unmasked" }),
  Seccomp: { securityContext: { seccompProfile: { type: "Unconfined" } } },
  SELinuxUser: context({ seLinuxOptions: { user: "system_u" } }),
  SELinuxType: context({ seLinuxOptions: { type: "spc_t" } }),
  AddCapabilities: context({ capabilities: { add: ["SYS_ADMIN"] } }),
};

test(
  "Pods and Services are held to fourteen policies, unless they are exempt",
  withTestCluster({
    operator: (options) =>
      operator({ ...options, namespaces: "all", probes: undefined }),
  }, async ({ client, namespace, until }) => {
    const create = (spec: Partial<PodSpec>, name = "web") =>
      client.create(Pod, {
        metadata: { namespace, name },
        spec: { containers: [{ name: "main", image: "shop" }], ...spec },
      }, { dryRun: true });
    const refusal = (made: Promise<unknown>) =>
      made.then(() => "", ({ message }) => String(message));
    await until(async () =>
      /\(HostNamespaces\)/.test(await refusal(create({ hostIPC: true })))
    );
    for (const [policy, spec] of Object.entries(REFUSED)) {
      const names = (await refusal(create(spec))).match(/\((\w+)\)/g);
      assert.deepEqual(names, [`(${policy})`]);
    }
    const types = [
      ["ExternalName", "ExternalNames"],
      ["NodePort", "NodePorts"],
    ] as const;
    for (const [type, policy] of types) {
      const message = await refusal(client.create(Service, {
        metadata: { namespace, name: "web" },
        spec: { type, externalName: "example.org", ports: [{ port: 80 }] },
      }, { dryRun: true }));
      assert.match(message, new RegExp(`\\(${policy}\\)`));
    }
    // What a pod leaves open is filled in.
    const { spec } = await create(context({ readOnlyRootFilesystem: true }));
    assert.equal(spec?.securityContext?.runAsUser, 1000);
    assert.deepEqual(
      spec?.containers[0]?.securityContext?.capabilities?.drop,
      ["ALL"],
    );
    // A path of the host: two policies, and an exemption from both.
    const mount = { name: "host", mountPath: "/host" };
    const collector: Partial<PodSpec> = {
      volumes: [{ name: "host", hostPath: { path: "/var/log" } }],
      containers: [{ name: "main", image: "shop", volumeMounts: [mount] }],
    };
    assert.match(
      await refusal(create(collector, "collector-1")),
      /\(HostPathWrite\).*\(VolumeTypes\)/,
    );
    await client.apply(Namespace, { metadata: { name: "policy-exemptions" } });
    await client.apply(Exemption, {
      metadata: { namespace: "policy-exemptions", name: `of-${namespace}` },
      spec: {
        policies: ["HostPathWrite", "VolumeTypes"],
        namespace,
        name: "^collector-",
      },
    });
    await until(async () =>
      await refusal(create(collector, "collector-1")) === ""
    );
    const { metadata } = await create(collector, "collector-1");
    assert.deepEqual(metadata.annotations, {
      "policies.gallery.coracle.dev/HostPathWrite": "exempted",
      "policies.gallery.coracle.dev/VolumeTypes": "exempted",
    });
    assert.match(await refusal(create(collector)), /\(HostPathWrite\)/);
  }),
);
