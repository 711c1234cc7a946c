/**
 * Checks of the kinds of certificates.k8s.io, for the validation rules.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { createPublicKey, type KeyObject, X509Certificate } from "node:crypto";
import type { Condition } from "@coracle/operator/kinds";
import { goJson } from "../../validation/go_value.ts";
import { readRequestContent } from "../../certificate_request.ts";
import { labelProblems, subdomainProblems } from "../../validation/names.ts";

/** Problems of the parts of a signer name `domain/path`, each with the wrong part. */
export function signerProblems(
  signerName: string | undefined,
): readonly (readonly [part: string, problem: string])[] {
  const [domain = "", path, ...rest] = (signerName ?? "").split("/");
  if (path === undefined || rest.length > 0) return [];
  const labels = domain.split(".");
  const first = (
    part: string,
    texts: readonly string[],
    check: (text: string) => readonly string[],
  ) => {
    const odd = texts.find((text) => check(text).length > 0);
    return odd === undefined ? [] : check(odd).map((problem) =>
      [
        part,
        `validating label ${JSON.stringify(odd)}: ${problem}`,
      ] as const
    );
  };
  return [
    ...first(domain, labels, labelProblems),
    ...labels.length < 2
      ? [
        [
          domain,
          "should be a domain with at least two segments separated by dots",
        ] as const,
      ]
      : [],
    ...first(path, path.split("."), subdomainProblems),
  ];
}

/** Signer in the name of a ClusterTrustBundle; empty if it names none. */
export function bundleSigner(name: string): string {
  return name.slice(0, Math.max(0, name.lastIndexOf(":"))).replaceAll(":", "/");
}

/** Problems of the name of a ClusterTrustBundle. */
export function bundleNameProblems(
  name: string,
  signerName: string,
): readonly string[] {
  if (signerName === "") {
    return name.includes(":")
      ? [
        'ClusterTrustBundle without signer name must not have ":" in its name',
      ]
      : subdomainProblems(name);
  }
  const prefix = `${signerName.replaceAll("/", ":")}:`;
  return name.startsWith(prefix)
    ? subdomainProblems(name.slice(prefix.length))
    : [
      `ClusterTrustBundle for signerName ${signerName} must be named with prefix ${prefix}`,
    ];
}

const BLOCKS = /-----BEGIN ([^\r\n-]+)-----[ \t]*\r?\n([^-]*)-----END \1-----/g;

/** Problems of the certificates of a ClusterTrustBundle, in PEM. */
export function trustBundleProblems(bundle: string = ""): readonly string[] {
  const problems: string[] = [];
  const places = new Map<string, number[]>();
  for (
    const [index, [, type, body = ""]] of [...bundle.matchAll(BLOCKS)].entries()
  ) {
    const problem = type !== "CERTIFICATE"
      ? `has bad block type: ${type}`
      : body.includes(":")
      ? "has PEM block headers"
      : authorityProblem(body);
    if (problem !== undefined) {
      problems.push(`entry ${index} ${problem}`);
      continue;
    }
    const content = body.replaceAll(/\s/g, "");
    places.set(content, [...places.get(content) ?? [], index]);
  }
  if (problems.length > 0) return problems;
  if (places.size === 0) return ["at least one trust anchor must be provided"];
  return [...places.values()].filter(({ length }) => length > 1).map((found) =>
    `duplicate trust anchor (indices [${found.join(" ")}])`
  );
}

function authorityProblem(base64: string): string | undefined {
  const certificate = certificateIn(base64);
  if (!certificate) return "does not parse as X.509";
  return certificate.ca ? undefined : "does not have the CA bit set";
}

/** Problem of a certificate request, with what is wrong of its key. */
export interface RequestProblem {
  readonly value?: string;
  readonly why: string;
}

/** Names of the curves of elliptic keys, as Go names them; those allowed are true. */
const CURVES: Readonly<
  Record<string, readonly [name: string, allowed: boolean]>
> = {
  secp224r1: ["P-224", false],
  prime256v1: ["P-256", true],
  secp384r1: ["P-384", true],
  secp521r1: ["P-521", true],
};

function requestedKey(base64: string): KeyObject {
  const request = readRequestContent(Buffer.from(base64, "base64"));
  return createPublicKey({
    key: Buffer.from(request.publicKey),
    format: "der",
    type: "spki",
  });
}

/** Problem of the request of a PodCertificateRequest, which is DER in base64. */
export function requestProblem(
  base64: string = "",
): RequestProblem | undefined {
  if (base64 === "") return undefined;
  let publicKey: KeyObject;
  try {
    publicKey = requestedKey(base64);
  } catch (error) {
    return {
      why: error instanceof Error && /signature/.test(error.message)
        ? "invalid signature"
        : "must be a valid PKCS#10 CSR",
    };
  }
  const { asymmetricKeyType, asymmetricKeyDetails } = publicKey;
  switch (asymmetricKeyType) {
    case "ed25519":
      return undefined;
    case "ec": {
      const [name, isAllowed] =
        CURVES[asymmetricKeyDetails?.namedCurve ?? ""] ?? [];
      return isAllowed ? undefined : {
        value: `curve ${name}`,
        why: "elliptic public keys must use curve P256, P384, or P521",
      };
    }
    case "rsa": {
      const bits = asymmetricKeyDetails?.modulusLength;
      return bits === 3072 || bits === 4096 ? undefined : {
        value: `${bits}-bit modulus`,
        why: "RSA keys must have modulus size 3072 or 4096",
      };
    }
    default:
      return {
        why:
          "unknown public key type; supported types are Ed25519, ECDSA, and RSA",
      };
  }
}

/** Types of the conditions that are true. */
export function trueConditions(
  conditions: readonly Condition[] = [],
): readonly string[] {
  return conditions.filter(({ status }) => status === "True")
    .map(({ type }) => type);
}

/** Whether conditions cannot be those of a PodCertificateRequest. */
export function isOddDecision(conditions: readonly Condition[] = []): boolean {
  return conditions.length > 1 ||
    conditions.some((condition) =>
      !["Issued", "Denied", "Failed"].includes(condition.type) ||
      condition.status !== "True" || !condition.reason ||
      !condition.lastTransitionTime
    );
}

/** Conditions in the order of the fields of Go's type. */
export function goConditions(conditions: readonly Condition[]): string {
  return goJson(conditions, [
    "type",
    "status",
    "observedGeneration",
    "lastTransitionTime",
    "reason",
    "message",
  ]);
}

/** Status of a PodCertificateRequest whose certificate is issued. */
interface Issue {
  readonly certificateChain?: string;
  readonly notBefore?: string;
  readonly notAfter?: string;
  readonly beginRefreshAt?: string;
}

/** Problem of a field of an {@linkcode Issue}. */
export interface IssueProblem {
  readonly field: keyof Issue;
  readonly why?: string;
  /** What is wrong; `isMissing` or `limit` if none exists. */
  readonly value?: string | number;
  readonly isMissing?: true;
  /** Greatest size in bytes. */
  readonly limit?: number;
}

const MINUTE_MS = 60_000;
const GREATEST_CHAIN = 100 * 1_024;

/**
 * Problems of an issued certificate.
 *
 * @param now Time of the server, in milliseconds since the Unix epoch.
 */
export function issueProblems(
  issue: Issue,
  { stubPKCS10Request = "", maxExpirationSeconds = 0 }: {
    readonly stubPKCS10Request?: string;
    readonly maxExpirationSeconds?: number;
  },
  now: number,
): readonly IssueProblem[] {
  const { certificateChain: chain = "", ...times } = issue;
  const wrong = (
    why: string,
    field: keyof Issue = "certificateChain",
    value: string | number = issue[field] ?? "",
  ): readonly IssueProblem[] => [{ field, why, value }];
  if (chain.length > GREATEST_CHAIN) {
    return [{ field: "certificateChain", limit: GREATEST_CHAIN }];
  }
  const [leafBlock, ...others] = [...chain.matchAll(BLOCKS)];
  if (!leafBlock) {
    return wrong(
      "issued certificate chain must contain at least one certificate",
    );
  }
  if (leafBlock[1] !== "CERTIFICATE") {
    return wrong(
      "issued certificate chain must consist entirely of CERTIFICATE PEM blocks",
    );
  }
  const leaf = certificateIn(leafBlock[2] ?? "");
  if (!leaf) return wrong("leaf certificate does not parse as valid X.509");
  if (!isSameKey(leaf.publicKey, requestedKey(stubPKCS10Request))) {
    return wrong("leaf certificate was not issued to the requested public key");
  }
  const range = {
    notBefore: "must be present and consistent with the issued certificate",
    notAfter: "must be present and consistent with the issued certificate",
    beginRefreshAt:
      "must be present and in the range [notbefore+10min, notafter-10min]",
  };
  const missing = (Object.keys(range) as (keyof typeof range)[])
    .filter((field) => !times[field])
    .map((field) => ({ field, why: range[field], isMissing: true as const }));
  if (missing.length > 0) return missing;
  const [from, to, refresh] = [
    times.notBefore,
    times.notAfter,
    times.beginRefreshAt,
  ].map((text) => Date.parse(text ?? "")) as [number, number, number];
  const nanoseconds = (to - from) * 1_000_000;
  if (from !== Date.parse(leaf.validFrom)) {
    return wrong(
      "must be set to the NotBefore time encoded in the leaf certificate",
      "notBefore",
    );
  }
  if (Math.abs(from - now) >= 5 * MINUTE_MS) {
    return wrong(
      "must be set to within 5 minutes of kube-apiserver's current time",
      "notBefore",
    );
  }
  if (to !== Date.parse(leaf.validTo)) {
    return wrong(
      "must be set to the NotAfter time encoded in the leaf certificate",
      "notAfter",
    );
  }
  if (to - from < 60 * MINUTE_MS) {
    return wrong(
      "leaf certificate lifetime must be >= 1 hour",
      "certificateChain",
      nanoseconds,
    );
  }
  if (to - from > maxExpirationSeconds * 1_000) {
    return wrong(
      `leaf certificate lifetime must be <= spec.maxExpirationSeconds (${maxExpirationSeconds})`,
      "certificateChain",
      nanoseconds,
    );
  }
  if (refresh < from + 10 * MINUTE_MS) {
    return wrong(
      "must be at least 10 minutes after status.notBefore",
      "beginRefreshAt",
    );
  }
  if (refresh > to - 10 * MINUTE_MS) {
    return wrong(
      "must be at least 10 minutes before status.notAfter",
      "beginRefreshAt",
    );
  }
  if (others.some(([, type]) => type !== "CERTIFICATE")) {
    return wrong(
      "issued certificate chain must consist entirely of CERTFICATE PEM blocks",
    );
  }
  return others.every(([, , body = ""]) => certificateIn(body))
    ? []
    : wrong("intermediate certificate does not parse as valid X.509");
}

function certificateIn(base64: string): X509Certificate | undefined {
  try {
    return new X509Certificate(Buffer.from(base64, "base64"));
  } catch {
    return undefined;
  }
}

function isSameKey(one: KeyObject, other: KeyObject): boolean {
  const [a, b] = [one, other].map((key) =>
    key.export({ format: "der", type: "spki" })
  ) as [Buffer, Buffer];
  return a.equals(b);
}
