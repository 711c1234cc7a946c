import {
  ApiError,
  type Client,
  type HttpRequest,
} from "@coracle/operator/client";

/** Group of webhooks and policies. */
const ADMISSION = "/apis/admissionregistration.k8s.io/";

/** Webhooks and policies that an operator under test has applied. */
export class AdmissionRecord {
  readonly #paths: Set<string> = new Set();

  /** Notes a request if it applies one. */
  note({ method, path }: HttpRequest): void {
    if (method !== "PATCH" || !path.startsWith(ADMISSION)) return;
    this.#paths.add(path.replace(/\?.*$/s, ""));
  }

  /** Deletes those that exist, which nobody serves any longer. */
  async remove(client: Client): Promise<void> {
    for (const path of this.#paths) {
      try {
        const request = { method: "DELETE", path, headers: {} } as const;
        await (await client.request(request)).cancel();
      } catch (error) {
        if (!ApiError.is(error) || !error.isNotFound) throw error;
      }
    }
  }
}
