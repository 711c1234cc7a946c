import { CertificateSigningRequest } from "@coracle/operator/kinds";
import {
  type CertificateRequest,
  readCertificateRequest,
  RequestError,
} from "../../certificate_request.ts";
import { type KeyPair, signRequest } from "@coracle/operator/internal";
import type { ControllerDefinition } from "../controller_loop.ts";
import { withCondition } from "../conditions.ts";

type Usages = NonNullable<CertificateSigningRequest["spec"]["usages"]>;

const SIGNATURE: Usages = ["digital signature"];
const KUBELET: Usages = [...SIGNATURE, "key encipherment"];

/** Reason why a signer rejects a request; undefined if it accepts it. */
type Check = (
  request: CertificateRequest,
  usages: Usages,
) => string | undefined;

/** Signers of Kubernetes with their rules. */
const SIGNERS: Readonly<Record<string, Check>> = {
  "kubernetes.io/kube-apiserver-client": clientProblem,
  "kubernetes.io/kube-apiserver-client-kubelet": kubeletClientProblem,
  "kubernetes.io/kubelet-serving": kubeletServingProblem,
};

/** Milliseconds by which certificates are backdated. */
const BACKDATE_MS = 5 * 60_000;
const YEAR_SECONDS = 365 * 24 * 3600;
const LEAST_SECONDS = 600;

/** Controller that signs approved CertificateSigningRequests of the signers of Kubernetes. */
export function certificateSigner(
  authority: () => KeyPair,
): ControllerDefinition {
  return {
    name: "certificatesigningrequest-signing-controller",
    kind: CertificateSigningRequest,
    async sync(object, api) {
      const request = object as CertificateSigningRequest;
      const { spec, status = {} } = request;
      const check = Object.hasOwn(SIGNERS, spec.signerName)
        ? SIGNERS[spec.signerName]
        : undefined;
      const holds = (wanted: string) =>
        status.conditions?.some(({ type, status }) =>
          type === wanted && status === "True"
        );
      if (check === undefined || status.certificate) return;
      if (!holds("Approved") || holds("Denied") || holds("Failed")) return;
      const { usages = [], expirationSeconds = YEAR_SECONDS } = spec;
      const read = requestOf(spec.request);
      const problem = typeof read === "string" ? read : check(read, usages);
      if (typeof read !== "string" && problem === undefined) {
        const certificate = signRequest(authority(), read, {
          usages,
          now: api.now,
          backdate: BACKDATE_MS,
          validFor: 1000 * Math.min(
            Math.max(expirationSeconds, LEAST_SECONDS),
            YEAR_SECONDS,
          ),
        });
        await api.setStatus(CertificateSigningRequest, request, {
          ...status,
          certificate: btoa(certificate),
        });
        return;
      }
      await api.setStatus(CertificateSigningRequest, request, {
        ...status,
        conditions: withCondition(status.conditions, {
          type: "Failed",
          status: "True",
          reason: "SignerValidationFailure",
          message: problem ?? "",
          lastUpdateTime: api.time,
          lastTransitionTime: api.time,
        }),
      });
    },
  };
}

/** Request, or the reason why it is invalid. */
function requestOf(encoded: string): CertificateRequest | string {
  try {
    return readCertificateRequest(encoded);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return error.message;
  }
}

function clientProblem(
  _: CertificateRequest,
  usages: Usages,
): string | undefined {
  const permitted = [...KUBELET, "client auth"];
  const wrong = usages.find((one) => !permitted.includes(one));
  if (wrong) return `invalid usage for client certificate: ${wrong}`;
  return usages.includes("client auth")
    ? undefined
    : "missing required usage for client certificate: client auth";
}

/** Problem of the subject of a node's certificate. */
function organizationProblem(
  { organizations }: CertificateRequest,
): string | undefined {
  return organizations.length === 1 && organizations[0] === "system:nodes"
    ? undefined
    : "subject organization is not system:nodes";
}

function nodeNameProblem(
  { commonName }: CertificateRequest,
): string | undefined {
  return commonName.startsWith("system:node:")
    ? undefined
    : "subject common name does not begin with system:node:";
}

/** Problem of usages, which must be those of a node, with or without encipherment. */
function nodeUsageProblem(
  usages: Usages,
  needed: Usages[0],
): string | undefined {
  const given = new Set(usages);
  const matches = [SIGNATURE, KUBELET].some((base) => {
    const wanted = new Set([...base, needed]);
    return wanted.size === given.size &&
      [...wanted].every((one) => given.has(one));
  });
  const all = [...KUBELET, needed].sort().join(" ");
  return matches ? undefined : `usages did not match [${all}]`;
}

function kubeletClientProblem(
  request: CertificateRequest,
  usages: Usages,
): string | undefined {
  const { dns, email, ip, uri } = request.names;
  return organizationProblem(request) ??
    (dns > 0 ? "DNS subjectAltNames are not allowed" : undefined) ??
    (email > 0 ? "Email subjectAltNames are not allowed" : undefined) ??
    (ip > 0 ? "IP subjectAltNames are not allowed" : undefined) ??
    (uri > 0 ? "URI subjectAltNames are not allowed" : undefined) ??
    nodeNameProblem(request) ??
    nodeUsageProblem(usages, "client auth");
}

function kubeletServingProblem(
  request: CertificateRequest,
  usages: Usages,
): string | undefined {
  const { dns, email, ip, uri } = request.names;
  return organizationProblem(request) ??
    (dns + ip === 0 ? "DNS or IP subjectAltName is required" : undefined) ??
    (email > 0 ? "Email subjectAltNames are not allowed" : undefined) ??
    (uri > 0 ? "URI subjectAltNames are not allowed" : undefined) ??
    nodeUsageProblem(usages, "server auth") ??
    nodeNameProblem(request);
}
