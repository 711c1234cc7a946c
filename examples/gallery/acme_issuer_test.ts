import { type OperatorOptions, untyped } from "@coracle/operator";
import { Secret } from "@coracle/operator/kinds";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { test } from "node:test";
import { operator } from "./acme_issuer.ts";
import { AcmeServer } from "./acme_server.ts";

const AcmeCertificate = untyped({
  group: "gallery.coracle.dev",
  version: "v1",
  kind: "AcmeCertificate",
  plural: "acmecertificates",
  scope: "Namespaced",
});

const DAY_MS = 86_400_000;

test("A certificate is issued, renewed in time, and ordered again for other names", () => {
  const acme = new AcmeServer();
  const clock = new VirtualClock({ start: new Date() });
  acme.now = () => clock.wallTime();
  acme.validDays = 3;
  return withTestCluster(
    {
      operator: (options: OperatorOptions) => {
        const issuer = operator(
          options,
          acme.fetch,
          "http://acme.test/directory",
        );
        acme.ask = (name, token) =>
          name.endsWith("example.com")
            ? issuer.challenges.answer(token)
            : "something else";
        return issuer;
      },
      clock,
    },
    async (cluster) => {
      const { client, namespace } = cluster;
      const key = { namespace, name: "shop" };
      const status = async () =>
        (await client.get(AcmeCertificate, key))["status"] as
          | { notAfter?: string; message?: string }
          | undefined;
      const secret = async () => {
        const { data = {} } = await client.get(Secret, {
          namespace,
          name: "shop-tls",
        });
        const read = (name: string) => Buffer.from(data[name] ?? "", "base64");
        const certificate = new X509Certificate(read("tls.crt"));
        assert.ok(
          certificate.checkPrivateKey(createPrivateKey(read("tls.key"))),
        );
        return certificate;
      };

      acme.isDown = true;
      await client.create(AcmeCertificate, {
        metadata: key,
        spec: {
          dnsNames: ["shop.example.com"],
          secretName: "shop-tls",
          renewDaysBefore: 1,
        },
      });
      await cluster.until(async () =>
        /answers 503/.test((await status())?.message ?? "")
      );
      acme.isDown = false;
      await cluster.until(async () => (await status())?.notAfter !== undefined);
      const first = await secret();
      assert.equal(first.subjectAltName, "DNS:shop.example.com");
      assert.deepEqual([acme.orders, acme.issued], [1, 1]);
      assert.equal(
        await client.find(Secret, { namespace, name: "shop-next-key" }),
        undefined,
      );

      await clock.advance(1.9 * DAY_MS);
      assert.equal(acme.issued, 1);
      await clock.advance(0.2 * DAY_MS);
      assert.equal(acme.issued, 2);
      assert.notEqual((await secret()).serialNumber, first.serialNumber);

      await client.patch(AcmeCertificate, key, {
        spec: { dnsNames: ["shop.example.com", "www.shop.example.com"] },
      });
      await cluster.until(() => acme.issued === 3);
      await cluster.until(async () =>
        (await secret()).subjectAltName?.includes("www") ?? false
      );

      // Somebody breaks it.
      await client.patch(Secret, { namespace, name: "shop-tls" }, {
        data: { "tls.crt": Buffer.from("nothing").toString("base64") },
      });
      await cluster.until(() => acme.issued === 4);
      await cluster.until(() => secret().then(() => true, () => false));

      await client.patch(AcmeCertificate, key, {
        spec: { dnsNames: ["shop.example.org"] },
      });
      await cluster.until(async () =>
        /shop\.example\.org gives a wrong answer/.test(
          (await status())?.message ?? "",
        )
      );
      assert.equal(acme.issued, 4);
      assert.ok((await secret()).subjectAltName?.includes("www"));
    },
  )();
});
