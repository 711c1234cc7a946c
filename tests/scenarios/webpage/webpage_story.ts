import assert from "node:assert/strict";
import type { Client, Kind } from "@coracle/operator/client";
import { untyped } from "../../../core/api/kind.ts";
import {
  ConfigMap,
  Deployment,
  Ingress,
  Service,
} from "../../../core/kinds/mod.ts";
import { until } from "../../support/until.ts";

const WebPage = untyped({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "WebPage",
  plural: "webpages",
  scope: "Namespaced",
});

/**
 * Milliseconds until the objects of a removed page must be collected: the
 * garbage collector of a real cluster discovers new kinds every 30 s only.
 */
const COLLECTED_WITHIN = 90_000;

/**
 * Plays a user of an operator in another process: a page is created, changed,
 * exposed, hidden and deleted with all its objects.
 *
 * @param client Of the cluster in which the operator runs.
 * @param namespace Where the page lives.
 * @param becomesReady Whether anything makes Deployments ready there.
 */
export async function tellWebPageStory(
  client: Client,
  namespace: string,
  becomesReady = true,
): Promise<void> {
  const key = { namespace, name: "hello" };
  const html = async () =>
    (await client.find(ConfigMap, key))?.data?.["index.html"];
  const status = async () =>
    (await client.get(WebPage, key))["status"] as
      | { ready?: boolean; url?: string }
      | undefined;

  const page = await client.create(WebPage, {
    metadata: { ...key },
    spec: { html: "<h1>Hello</h1>" },
  });
  await until(
    "the HTML is served",
    async () => await html() === "<h1>Hello</h1>",
  );
  const deployment = await until(
    "the Deployment",
    () => client.find(Deployment, key),
  );
  const service = await until("the Service", () => client.find(Service, key));
  for (const object of [deployment, service]) {
    assert.equal(object.metadata.ownerReferences?.[0]?.uid, page.metadata.uid);
  }
  await until(
    "the page is ready, or known not to be",
    async () => (await status())?.ready === becomesReady,
  );
  assert.match((await status())?.url ?? "", /\.svc\/$/);
  assert.equal(await client.find(Ingress, key), undefined);

  const change = (spec: Record<string, unknown>) =>
    client.patch(WebPage, key, { spec }, { type: "merge" });
  await change({ html: "<h1>Changed</h1>" });
  await until(
    "the new HTML is served",
    async () => await html() === "<h1>Changed</h1>",
  );

  await change({ exposed: true });
  await until("the Ingress", () => client.find(Ingress, key));
  await until(
    "the new URL",
    async () => /example\.com\/$/.test((await status())?.url ?? ""),
  );
  await change({ exposed: false });
  await until(
    "the Ingress is gone",
    async () => await client.find(Ingress, key) === undefined,
  );

  await client.delete(WebPage, key);
  const made: readonly Kind[] = [WebPage, ConfigMap, Deployment, Service];
  for (const kind of made) {
    await until(
      `${kind.kind} is gone`,
      async () => await client.find(kind, key) === undefined,
      { within: COLLECTED_WITHIN },
    );
  }
}
