/**
 * Operator for certificates from an ACME server, such as Let's Encrypt. It proves
 * by http-01 that the names are ours, stores key and certificate in a Secret, and
 * renews them in time.
 *
 *     apiVersion: gallery.coracle.dev/v1
 *     kind: AcmeCertificate
 *     metadata: { name: shop }
 *     spec:
 *       dnsNames: [shop.example.com]
 *       secretName: shop-tls
 *
 * The ACME server asks `http://NAME/.well-known/acme-challenge/TOKEN`; an Ingress
 * sends this path to port 8089 of the operator. The environment variable
 * `ACME_DIRECTORY` names the server: if users could, they could make this pod send
 * requests to any address.
 */
import { Buffer } from "node:buffer";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createServer, type Server } from "node:http";
import process from "node:process";
import {
  ApiError,
  type Context,
  defineKind,
  type ObjectOf,
  Operator,
  type OperatorOptions,
  patchStatus,
  setStatus,
  watch,
} from "@coracle/operator";
import { Secret } from "@coracle/operator/kinds";
import { z } from "zod";
import {
  AcmeAccount,
  challengeAnswer,
  type Fetch,
  newKey,
} from "./acme_client.ts";

const DAY_MS = 86_400_000;
/** Label of our Secrets, so that no other is read. */
const LABELS = { "gallery.coracle.dev/acme": "true" };
/** Secret with the key of the account, in each namespace with certificates. */
const ACCOUNT = "acme-account";

const AcmeCertificate = defineKind({
  group: "gallery.coracle.dev",
  version: "v1",
  kind: "AcmeCertificate",
  spec: z.object({
    dnsNames: z.array(z.string().regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/))
      .min(1).max(100),
    secretName: z.string(),
    email: z.email().optional(),
    renewDaysBefore: z.int().min(1).max(60).default(30),
  }),
  status: z.object({
    notAfter: z.string(),
    order: z.string().describe("URL of the order in progress."),
    answers: z.record(z.string(), z.string())
      .describe("Answers to the challenges by token. They are no secrets."),
    message: z.string(),
  }).partial(),
  printerColumns: [
    { name: "Valid until", type: "date", jsonPath: ".status.notAfter" },
    { name: "Message", type: "string", jsonPath: ".status.message" },
  ],
});
type AcmeCertificate = ObjectOf<typeof AcmeCertificate>;

/** Answers to the challenges of the orders in progress. */
export interface Challenges {
  /** Answer to a token; undefined if no order has it. */
  answer(token: string): string | undefined;
}

/** End of the certificate's validity, if it is for these names and fits its key. */
function validUntil(
  secret: Secret | undefined,
  { dnsNames }: AcmeCertificate["spec"],
): number | undefined {
  const pem = text(secret, "tls.crt");
  const key = text(secret, "tls.key");
  if (pem === undefined || key === undefined || !fits(pem, key)) {
    return undefined;
  }
  const { subjectAltName = "", validTo } = new X509Certificate(pem);
  const names = subjectAltName.split(", ").map((name) =>
    name.replace(/^DNS:/, "")
  );
  return dnsNames.every((name) => names.includes(name))
    ? Date.parse(validTo)
    : undefined;
}

/** Own Secret with the certificate; undefined if it is absent. */
async function ownSecret(
  { metadata, spec }: AcmeCertificate,
  ctx: Context<AcmeCertificate>,
): Promise<Secret | undefined> {
  const secret = await ctx.get(Secret, spec.secretName);
  const { ownerReferences = [] } = secret?.metadata ?? {};
  if (
    secret === undefined ||
    ownerReferences.some(({ uid }) => uid === metadata.uid)
  ) return secret;
  throw new Error(`The Secret ${spec.secretName} belongs to someone else`);
}

/** Whether both can be read, as nobody else has changed them, and belong together. */
function fits(certificate: string, key: string): boolean {
  try {
    return new X509Certificate(certificate)
      .checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

function text(secret: Secret | undefined, field: string): string | undefined {
  const data = secret?.data?.[field];
  return data === undefined
    ? undefined
    : Buffer.from(data, "base64").toString();
}

function base64(value: string): string {
  return Buffer.from(value).toString("base64");
}

/** Key in a Secret, which is created if it is absent. */
async function keyIn(
  name: string,
  ctx: Context<AcmeCertificate>,
  { owned }: { readonly owned: boolean },
): Promise<string> {
  const metadata = { name, labels: LABELS };
  const create = async () => {
    try {
      const data = { "tls.key": base64(newKey()) };
      return await ctx.create(Secret, { metadata, data }, { owned });
    } catch (error) {
      if (!ApiError.is(error) || !error.isAlreadyExists) throw error;
      // Without its label it is not in the cache.
      return await ctx.apply(Secret, { metadata }, { owned });
    }
  };
  const secret = await ctx.get(Secret, name) ?? await create();
  return z.string().parse(text(secret, "tls.key"));
}

export function operator(
  options: OperatorOptions = {},
  send: Fetch = fetch,
  directory: string = process.env["ACME_DIRECTORY"] ??
    "https://acme-v02.api.letsencrypt.org/directory",
): Operator & { readonly challenges: Challenges } {
  const operator = new Operator(options);
  const controller = operator.register(AcmeCertificate, {
    async reconcile(certificate, ctx) {
      const { metadata: { name }, spec, status } = certificate;
      const until = validUntil(await ownSecret(certificate, ctx), spec);
      const renewAt = (until ?? 0) - spec.renewDaysBefore * DAY_MS;
      const now = ctx.clock.wallTime();
      const next = `${name}-next-key`;
      if (until !== undefined && renewAt > now) {
        // Those of a former name as well.
        for (const { metadata } of await ctx.secondaries(Secret)) {
          if (metadata.name === spec.secretName) continue;
          await ctx.delete(Secret, metadata.name);
        }
        return setStatus({ notAfter: new Date(until).toISOString() })
          .rescheduleAfter(renewAt - now);
      }

      const accountKey = await keyIn(ACCOUNT, ctx, { owned: false });
      const { email } = spec;
      const { signal } = ctx;
      const account = await AcmeAccount.open(
        { directory, key: accountKey, email, send, signal },
      );
      const notAfter = status?.notAfter;
      const url = status?.order;
      const order = url === undefined ? undefined : await account.order(url);
      const ordered = order?.identifiers.map(({ value }) => value).sort();
      if (
        order === undefined ||
        String(ordered) !== String([...spec.dnsNames].sort())
      ) {
        const order = await account.newOrder(spec.dnsNames);
        return setStatus({ notAfter, order, message: "Ordered" })
          .rescheduleAfter("1s");
      }

      const wait = (message: string) =>
        setStatus({ notAfter, order: url, message }).rescheduleAfter("5s");
      if (order.status === "pending" || order.status === "invalid") {
        const challenges = await account.challenges(order);
        const failed = challenges.find(({ error }) => error !== undefined);
        if (failed !== undefined || order.status === "invalid") {
          const message = failed?.error?.detail ?? "The order is invalid";
          ctx.events.warning("OrderFailed", message);
          return setStatus({ notAfter, message }).rescheduleAfter("10m");
        }
        const answers: Record<string, string> = {};
        for (const challenge of challenges) {
          const { token = "", status: state } = challenge;
          answers[token] = challengeAnswer(token, accountKey);
          // Not before the answer is in the status, where all replicas find it.
          if (state === "pending" && status?.answers?.[token] !== undefined) {
            await account.accept(challenge);
          }
        }
        const message = "Waits for the checks of the names";
        return setStatus({ notAfter, order: url, answers, message })
          .rescheduleAfter("5s");
      }
      // The key is kept until its certificate is there: a run may end between.
      const key = await keyIn(next, ctx, { owned: true });
      if (order.status === "ready") {
        await account.finalize(order, spec.dnsNames, key);
        return wait("Waits for the certificate");
      }
      if (order.certificate === undefined) {
        return wait("Waits for the certificate");
      }
      const certificates = await account.download(order.certificate);
      if (!fits(certificates, key)) {
        // Somebody deleted the key, so another one was made.
        return setStatus({ notAfter, message: "The key was lost" })
          .rescheduleAfter("5s");
      }
      await ctx.apply(Secret, {
        metadata: { name: spec.secretName, labels: LABELS },
        type: "kubernetes.io/tls",
        data: {
          "tls.key": base64(key),
          "tls.crt": base64(certificates),
        },
      });
      ctx.events.normal("Issued", `Issued for ${spec.dnsNames.join(", ")}`);
      return setStatus({ notAfter }).rescheduleAfter("1s");
    },
    onError: (_certificate, error) =>
      patchStatus({ message: (error as Error).message }),
  }, {
    owns: [watch(Secret, { labelSelector: "gallery.coracle.dev/acme=true" })],
    install: true,
  });
  const challenges: Challenges = {
    answer(token) {
      if (!operator.health().ready) return undefined;
      for (const { status } of controller.primaries.list()) {
        const answers = status?.answers ?? {};
        if (Object.hasOwn(answers, token)) return answers[token];
      }
      return undefined;
    },
  };
  return Object.assign(operator, { challenges });
}

/** Answers the requests of the ACME server. */
function serve(challenges: Challenges): Server {
  return createServer(({ url = "" }, response) => {
    const token = /^\/\.well-known\/acme-challenge\/([^/]+)$/.exec(url)?.[1];
    const answer = token && challenges.answer(token);
    response.writeHead(answer ? 200 : 404, { "content-type": "text/plain" });
    response.end(answer);
  }).listen(8089);
}

if (import.meta.main) {
  const issuer = operator();
  const server = serve(issuer.challenges);
  await issuer.run();
  server.close();
  server.closeAllConnections();
}
