import { untyped } from "@coracle/operator";
import { Deployment, Service } from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import { test } from "node:test";
import { until, withExample } from "./run_example.ts";

const kindOf = (kind: string, plural: string) =>
  untyped({
    group: "sample.coracle.dev",
    version: "v1",
    kind,
    plural,
    scope: "Namespaced",
  });
const Tomcat = kindOf("Tomcat", "tomcats");
const WebApp = kindOf("WebApp", "webapps");

test(
  "The Tomcat example deploys many apps on one server, and follows both",
  withExample("tomcat.ts", async ({ client }) => {
    const namespace = "default";
    const key = { namespace, name: "shop" };
    const fetched = async () =>
      (await client.find(Deployment, key))?.spec?.template.spec?.initContainers
        ?.map(({ env }) => env?.map(({ value }) => value).join(" "));
    const app = async (name: string) =>
      (await client.get(WebApp, { namespace, name }))["status"] as
        | { deployed?: string; message?: string }
        | undefined;
    const make = (name: string) =>
      client.create(WebApp, {
        metadata: { namespace, name },
        spec: {
          tomcat: "shop",
          context: name,
          url: `https://example.com/${name}.war`,
        },
      });

    await make("cart");
    await until(
      "the app knows that it has no server",
      async () => (await app("cart"))?.message === 'There is no Tomcat "shop"',
    );
    await client.create(Tomcat, {
      metadata: { ...key },
      spec: { version: 11 },
    });
    await until(
      "the app is deployed",
      async () =>
        (await app("cart"))?.deployed === "https://example.com/cart.war",
    );
    assert.notEqual(await client.find(Service, key), undefined);
    await make("blog");
    await until(
      "both apps are fetched",
      async () => (await fetched())?.length === 2,
    );
    assert.deepEqual(await fetched(), [
      "blog https://example.com/blog.war",
      "cart https://example.com/cart.war",
    ]);
    await until(
      "the second app is deployed",
      async () =>
        (await app("blog"))?.deployed === "https://example.com/blog.war",
    );

    // An app that moves to another server leaves the first one.
    await client.patch(WebApp, { namespace, name: "cart" }, {
      spec: { tomcat: "other" },
    });
    await until(
      "one app is left",
      async () =>
        (await fetched())?.join() === "blog https://example.com/blog.war",
    );
    await until(
      "the app that moved has no server",
      async () => (await app("cart"))?.message === 'There is no Tomcat "other"',
    );
  }),
);
