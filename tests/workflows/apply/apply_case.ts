import { test } from "node:test";
import { ApiServer, type AuditEvent } from "@coracle/dev/apiserver";
import type { Client, KubernetesObject } from "@coracle/operator/client";
import type { AppliedChange } from "@coracle/operator/workflows";
import type { SetOptions } from "../../../workflows/apply/apply_set.ts";

/** To whom the sets of these tests belong. */
export const OWNER: SetOptions["owner"] = {
  group: "sample.coracle.dev",
  name: "shop",
  namespace: "default",
};
/** What their labels and annotations begin with. */
export const GROUP: string = OWNER.group;

/** A ConfigMap as it is sent. */
export function configMap(
  name: string,
  data: Record<string, string> = {},
  annotations: Record<string, string> = {},
): KubernetesObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { namespace: "default", name, annotations },
    data,
  } as KubernetesObject;
}

/** A Secret as it is sent. */
export function secret(data: Record<string, unknown>): KubernetesObject {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: "default", name: "login" },
    data,
  } as KubernetesObject;
}

/** A Deployment whose selector, which cannot change, is of an app. */
export function deployment(app: string): KubernetesObject {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { namespace: "default", name: "web" },
    spec: {
      selector: { matchLabels: { app } },
      template: {
        metadata: { labels: { app } },
        spec: { containers: [{ name: "main", image: "nginx" }] },
      },
    },
  } as KubernetesObject;
}

/** Changes as `Kind/name action`. */
export function told(changes: readonly AppliedChange[]): string[] {
  return changes.map(({ reference, action }) =>
    `${reference.kind}/${reference.name} ${action}`
  );
}

/** A server to apply sets to. */
export interface ApplyCase {
  readonly client: Client;
  /** What was written, but for dry runs. */
  readonly writes: AuditEvent[];
  readonly server: ApiServer;
}

/** A test of sets on a server of its own. */
export function applyTest(
  title: string,
  play: (one: ApplyCase) => Promise<void>,
): void {
  test(title, { timeout: 30_000 }, async () => {
    const writes: AuditEvent[] = [];
    const server = await ApiServer.start({
      port: false,
      audit: (event) => {
        const isWrite = /^(create|update|patch|delete)$/.test(event.verb);
        if (isWrite && !event.target.includes("dryRun")) writes.push(event);
      },
    });
    try {
      const { client } = server;
      await client.version();
      writes.length = 0;
      await play({ client, writes, server });
    } finally {
      await server.stop();
    }
  });
}
