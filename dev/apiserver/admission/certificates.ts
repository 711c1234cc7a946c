import { Buffer } from "node:buffer";
import type { UntypedObject } from "@coracle/operator/client";
import { jsonEquals } from "@coracle/operator/internal";
import type { CertificateSigningRequest } from "@coracle/operator/kinds";
import { accessAttributes } from "../access/attributes.ts";
import { type AdmissionPlugin, type Attributes, refusal } from "./admission.ts";

const REQUESTS = "certificatesigningrequests.certificates.k8s.io";

/** Signer of certificates with which clients authenticate. */
const CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client";

function asRequest(
  object: UntypedObject | undefined,
): CertificateSigningRequest {
  return object as unknown as CertificateSigningRequest;
}

/**
 * Checks that the user has the right to a signer, or to all signers of its
 * domain.
 *
 * @throws {StatusError} 403 if the user lacks the right.
 */
function checkSigner(attributes: Attributes, verb: "approve" | "sign"): void {
  const { request, oldObject } = attributes;
  const { signerName = "" } = asRequest(oldObject).spec ?? {};
  const names = [signerName, `${signerName.split("/")[0]}/*`];
  const { authorizer } = request.context;
  const allowed = names.some((name) =>
    authorizer.decide(
      request.user,
      accessAttributes({
        verb,
        name,
        group: "certificates.k8s.io",
        resource: "signers",
      }),
    ).allowed
  );
  if (allowed) return;
  throw refusal(
    attributes,
    `user not permitted to ${verb} requests with signerName "${signerName}"`,
  );
}

/** Plug-in that requires the right to approve for the signer of an approved request. */
export const CERTIFICATE_APPROVAL: AdmissionPlugin = {
  name: "CertificateApproval",
  operations: ["UPDATE"],
  resources: [`${REQUESTS}/approval`],
  validate: (attributes) => checkSigner(attributes, "approve"),
};

/** Plug-in that requires the right to sign for the signer of a signed request. */
export const CERTIFICATE_SIGNING: AdmissionPlugin = {
  name: "CertificateSigning",
  operations: ["UPDATE"],
  resources: [`${REQUESTS}/status`],
  validate(attributes): void {
    const { status = {} } = asRequest(attributes.object);
    const { status: before = {} } = asRequest(attributes.oldObject);
    const unchanged = status.certificate === before.certificate &&
      jsonEquals(status.conditions ?? [], before.conditions ?? []);
    if (!unchanged) checkSigner(attributes, "sign");
  },
};

/** DER of the attribute type `organizationName`, 2.5.4.10. */
const ORGANIZATION = Buffer.from([6, 3, 0x55, 4, 10]);

/** Plug-in that refuses requests for client certificates of the group `system:masters`. */
export const CERTIFICATE_SUBJECT: AdmissionPlugin = {
  name: "CertificateSubjectRestriction",
  operations: ["CREATE"],
  resources: [REQUESTS],
  validate(attributes): void {
    const { spec } = asRequest(attributes.object);
    if (spec?.signerName !== CLIENT_SIGNER) return;
    const pem = Buffer.from(String(spec.request), "base64").toString("latin1");
    const body = /-----BEGIN [^-]+-----([^-]*)-----END/.exec(pem)?.[1] ?? "";
    const der = Buffer.from(body, "base64");
    const masters = Buffer.from("system:masters");
    let at = der.indexOf(ORGANIZATION);
    for (; at >= 0; at = der.indexOf(ORGANIZATION, at + 1)) {
      // The type is followed by the tag and the length of the value.
      const start = at + ORGANIZATION.length + 2;
      const length = der[start - 1] ?? 0;
      if (!der.subarray(start, start + length).equals(masters)) continue;
      throw refusal(
        attributes,
        `use of ${CLIENT_SIGNER} signer with system:masters group is not allowed`,
      );
    }
  },
};
