import { CertificateSigningRequest } from "@coracle/operator/kinds";
import { type KeyPair, signRequest } from "../../certificates.ts";
import type { ControllerDefinition } from "../controller_loop.ts";
import { withCondition } from "../conditions.ts";

type Usages = NonNullable<CertificateSigningRequest["spec"]["usages"]>;

const KUBELET: Usages = ["digital signature", "key encipherment"];

/** Permitted and required usages of each signer; undefined for any. */
const SIGNERS: Readonly<
  Record<string, { readonly usages?: Usages; readonly needed?: Usages[0] }>
> = {
  "kubernetes.io/kube-apiserver-client": {
    usages: [...KUBELET, "client auth"],
    needed: "client auth",
  },
  "kubernetes.io/kube-apiserver-client-kubelet": {
    usages: [...KUBELET, "client auth"],
    needed: "client auth",
  },
  "kubernetes.io/kubelet-serving": {
    usages: [...KUBELET, "server auth"],
    needed: "server auth",
  },
  "kubernetes.io/legacy-unknown": {},
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
      const signer = SIGNERS[spec.signerName];
      const holds = (wanted: string) =>
        status.conditions?.some(({ type, status }) =>
          type === wanted && status === "True"
        );
      if (signer === undefined || status.certificate) return;
      if (!holds("Approved") || holds("Denied") || holds("Failed")) return;
      const { usages = [], expirationSeconds = YEAR_SECONDS } = spec;
      const problem = usageProblem(usages, signer);
      if (problem === undefined) {
        const certificate = signRequest(authority(), spec.request, {
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
          message: problem,
          lastUpdateTime: api.time,
          lastTransitionTime: api.time,
        }),
      });
    },
  };
}

/** Reason why a signer rejects the usages; undefined if it accepts them. */
function usageProblem(
  usages: Usages,
  { usages: permitted, needed }: (typeof SIGNERS)[string],
): string | undefined {
  const wrong = permitted && usages.find((one) => !permitted.includes(one));
  if (wrong) return `invalid usage for client certificate: ${wrong}`;
  return needed === undefined || usages.includes(needed)
    ? undefined
    : `missing required usage for client certificate: ${needed}`;
}
