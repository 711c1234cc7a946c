/**
 * What a real Kubernetes 1.37 answers otherwise than the embedded server, by
 * comparison of `requests.ts`, which is skipped then; none today.
 */
export const KNOWN_DIFFERENCES: Readonly<Record<string, string>> = {};
