import type { UntypedObject } from "@coracle/operator/client";
import { jsonEquals } from "@coracle/operator/internal";
import { kindSubjectOf } from "../request/resource_request.ts";
import type { ResourceRequest } from "../request/resource_request.ts";
import { fieldError, invalid } from "../status.ts";
import { accessAttributes } from "./attributes.ts";

/** Right to a signer of certificates. */
export type SignerVerb = "approve" | "attest" | "sign";

/** Whether the user has a right to a signer, or to all signers of its domain. */
export function mayUseSigner(
  { context: { authorizer }, user }: ResourceRequest,
  verb: SignerVerb,
  signerName: string,
): boolean {
  const names = [signerName, `${signerName.split("/")[0]}/*`];
  return names.some((name) =>
    authorizer.decide(
      user,
      accessAttributes({
        verb,
        name,
        group: "certificates.k8s.io",
        resource: "signers",
      }),
    ).allowed
  );
}

/**
 * Checks that the writer of the status of a PodCertificateRequest may sign for
 * its signer.
 *
 * @throws {StatusError} 422 if the writer lacks this right.
 */
export function checkPodSigner(
  request: ResourceRequest,
  object: UntypedObject,
  live: UntypedObject,
): void {
  const { definition: { group, plural }, subresource, user } = request;
  if (plural !== "podcertificaterequests") return;
  if (group !== "certificates.k8s.io" || subresource?.name !== "status") return;
  if (jsonEquals(object.status ?? {}, live.status ?? {})) return;
  const { signerName = "" } = live.spec as { readonly signerName?: string };
  if (mayUseSigner(request, "sign", signerName)) return;
  throw invalid(kindSubjectOf(request), [
    fieldError.forbidden(
      "spec.signerName",
      `User ${
        JSON.stringify(user.name)
      } is not permitted to "sign" for signer ${JSON.stringify(signerName)}`,
    ),
  ]);
}
