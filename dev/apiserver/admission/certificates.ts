import type { UntypedObject } from "@coracle/operator/client";
import { jsonEquals } from "@coracle/operator/internal";
import type { CertificateSigningRequest } from "@coracle/operator/kinds";
import { mayUseSigner } from "../access/signer_access.ts";
import {
  readCertificateRequest,
  RequestError,
} from "../certificate_request.ts";
import { fieldError, invalid } from "../status.ts";
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
 * Checks that the user has the right to the signer of the request.
 *
 * @throws {StatusError} 403 if the user lacks the right.
 */
function checkSigner(attributes: Attributes, verb: "approve" | "sign"): void {
  const { request, oldObject } = attributes;
  const { signerName = "" } = asRequest(oldObject).spec ?? {};
  if (mayUseSigner(request, verb, signerName)) return;
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

/**
 * Plug-in that requires the right to attest for the signer of a
 * ClusterTrustBundle, unless only owners or finalizers change.
 */
export const BUNDLE_ATTEST: AdmissionPlugin = {
  name: "ClusterTrustBundleAttest",
  resources: ["clustertrustbundles.certificates.k8s.io"],
  validate(attributes): void {
    const { request, object, oldObject } = attributes;
    const { signerName = "" } = asRequest(object).spec ?? {};
    if (signerName === "") return;
    if (jsonEquals(withoutOwners(object), withoutOwners(oldObject))) return;
    if (mayUseSigner(request, "attest", signerName)) return;
    throw refusal(
      attributes,
      `user not permitted to attest for signerName "${signerName}"`,
    );
  },
};

/** Object without what garbage collection changes. */
function withoutOwners(object: UntypedObject | undefined): unknown {
  if (object === undefined) return undefined;
  const {
    ownerReferences: _,
    finalizers: __,
    managedFields: ___,
    ...metadata
  } = object.metadata;
  return { ...object, metadata };
}

/** Signer whose name version 1 of the API does not allow. */
const LEGACY_SIGNER = "kubernetes.io/legacy-unknown";

/**
 * Plug-in that refuses what is no certificate request, and requests for client
 * certificates of the group `system:masters`.
 */
export const CERTIFICATE_SUBJECT: AdmissionPlugin = {
  name: "CertificateSubjectRestriction",
  operations: ["CREATE"],
  resources: [REQUESTS],
  validate(attributes): void {
    const { spec } = asRequest(attributes.object);
    const refuse = (field: string, value: unknown, why: string): never => {
      const { group, kind } = attributes.request.definition;
      throw invalid({ group, kind, name: attributes.name }, [
        fieldError.invalid(`spec.${field}`, value, why),
      ]);
    };
    if (spec?.signerName === LEGACY_SIGNER) {
      refuse(
        "signerName",
        LEGACY_SIGNER,
        "the legacy signerName is not allowed via this API version",
      );
    }
    let organizations: readonly string[] = [];
    try {
      ({ organizations } = readCertificateRequest(String(spec?.request)));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      refuse("request", spec?.request, error.message);
    }
    if (spec?.signerName !== CLIENT_SIGNER) return;
    if (!organizations.includes("system:masters")) return;
    throw refusal(
      attributes,
      `use of ${CLIENT_SIGNER} signer with system:masters group is not allowed`,
    );
  },
};
