import type { Transport } from "@coracle/operator/client";
import type { PolicyRule } from "@coracle/operator/kinds";
import { ActingTransport } from "../../dev/testing/acting_transport.ts";
import { Client } from "../../core/client/client.ts";
import { ClusterRole, ClusterRoleBinding } from "../../core/kinds/rbac_v1.ts";
import type { OperatorFixture } from "./operator_fixture.ts";
import { until } from "./until.ts";

const GROUP = "rbac.authorization.k8s.io";

/** Client of a user with few rights. */
export interface LimitedClient {
  readonly client: Client;
  readonly transport: Transport;
  /** Replaces the rights; resolves when the server enforces them. */
  grant(rules: readonly PolicyRule[]): Promise<void>;
}

/** Creates a user with the rights of RBAC rules, and a client for it. */
export async function limitedClient(
  fixture: OperatorFixture,
  rules: readonly PolicyRule[],
): Promise<LimitedClient> {
  const name = `limited-${crypto.randomUUID().slice(0, 8)}`;
  const { clock } = fixture;
  const transport = new ActingTransport(fixture.transport, { user: name });
  const grant = async (granted: readonly PolicyRule[]) => {
    await fixture.client.apply(ClusterRole, {
      metadata: { name },
      rules: [...granted],
    });
    await until("the server knows the rights", async () => {
      const last = granted.at(-1);
      const { allowed } = await may(fixture, name, last);
      return allowed === (last !== undefined);
    });
  };
  await fixture.client.apply(ClusterRoleBinding, {
    metadata: { name },
    roleRef: { apiGroup: GROUP, kind: "ClusterRole", name },
    subjects: [{ apiGroup: GROUP, kind: "User", name }],
  });
  await grant(rules);
  return {
    client: new Client({ transport, namespace: "default" }, { clock }),
    transport,
    grant,
  };
}

/** Asks the server about the first verb of a rule; without one, about Gadgets. */
async function may(
  { transport }: OperatorFixture,
  user: string,
  rule: PolicyRule | undefined,
): Promise<{ readonly allowed: boolean }> {
  const sample = { apiGroups: ["sample.coracle.dev"], resources: ["gadgets"] };
  const { apiGroups, resources, verbs } = rule ??
    { ...sample, verbs: ["list"] };
  const resourceAttributes = {
    group: apiGroups?.[0],
    resource: resources?.[0],
    verb: verbs[0],
  };
  const response = await transport.send({
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ spec: { user, resourceAttributes } }),
  });
  let text = "";
  for await (const chunk of response.body) {
    text += new TextDecoder().decode(chunk);
  }
  return JSON.parse(text).status;
}
