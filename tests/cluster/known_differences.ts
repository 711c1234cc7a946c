/**
 * Where a real Kubernetes 1.36 answers otherwise than the embedded server, which
 * still has the words of 1.32 there. On a real cluster these comparisons are
 * skipped, each with what differs.
 *
 * @module
 */

/** What differs, by comparison of `requests.ts` and by transcript. */
export const KNOWN_DIFFERENCES: Readonly<Record<string, string>> = {
  // Comparisons
  selectors: "label keys are called so, and no longer qualified names",
  metadata: "values are shown as JSON, and label keys are called so",
  custom: "null is shown without quotes, and a type error is reported twice",
  definitions: "missing lists are shown as null",
  priorities: "the difference of two Pods is shown with the fields of 1.36",
  "quota-scopes":
    "a Pod is refused over a quota that the embedded server allows",
  claims: "the difference of two claims is shown",
  // Transcripts
  "06-auth": "null is shown without quotes",
  "12-service": "names of Services may begin with a digit",
  "47-apply-status": "managed fields of a status hold no metadata",
  "50-status-subresource": "managed fields of a status hold no metadata",
  "59-crd-invalid": "missing lists and schemas are worded otherwise",
  "61-crd-validation": "a type error is reported twice",
  "63-crd-cel": "refusals by rules show the value and not its type",
  "71-delete-options": "a malformed body is 400 and no longer 500",
  "83-list-resource-version": "a malformed version is 400 and no longer 500",
};
