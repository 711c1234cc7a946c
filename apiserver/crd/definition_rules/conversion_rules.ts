import type { StatusCause } from "../../../core/api/api_error.ts";
import { label1035Problems } from "../../validation/names.ts";
import { fieldError } from "../../status.ts";

const { required, invalid, forbidden, notSupported } = fieldError;

const STRATEGIES: readonly string[] = ["None", "Webhook"];
const REVIEW_VERSIONS: readonly string[] = ["v1", "v1beta1"];

/** Conversion settings of a CRD. */
interface Conversion {
  readonly strategy?: string;
  readonly webhook?: {
    readonly clientConfig?: Readonly<Record<string, unknown>>;
    readonly conversionReviewVersions?: readonly string[];
  };
}

/** Validates the conversion settings of a CRD; returns the violations. */
export function conversionCauses(
  conversion: Conversion | undefined,
): StatusCause[] {
  if (conversion === undefined) return [];
  const base = "spec.conversion";
  const { strategy = "", webhook } = conversion;
  const { clientConfig, conversionReviewVersions: reviews = [] } = webhook ??
    {};
  const config = `${base}.webhookClientConfig`;
  const causes: StatusCause[] = [];
  if (strategy === "") causes.push(required(`${base}.strategy`));
  else if (!STRATEGIES.includes(strategy)) {
    causes.push(notSupported(`${base}.strategy`, strategy, STRATEGIES));
  }
  if (strategy !== "Webhook") {
    const why = "should not be set when strategy is not set to Webhook";
    if (clientConfig) causes.push(forbidden(config, why));
    if (reviews.length > 0) {
      causes.push(forbidden(`${base}.conversionReviewVersions`, why));
    }
    return causes;
  }
  if (clientConfig === undefined) {
    causes.push(required(config, "required when strategy is set to Webhook"));
  } else if (("url" in clientConfig) === ("service" in clientConfig)) {
    const why = "exactly one of url or service is required";
    causes.push(required(config, why));
  }
  return [...causes, ...reviewCauses(reviews)];
}

function reviewCauses(versions: readonly string[]): StatusCause[] {
  const field = "spec.conversion.conversionReviewVersions";
  if (versions.length === 0) return [required(field)];
  const causes = versions.flatMap((version, index) =>
    versions.indexOf(version) < index
      ? [invalid(`${field}[${index}]`, version, "duplicate version")]
      : label1035Problems(version).map((problem) =>
        invalid(`${field}[${index}]`, version, problem)
      )
  );
  if (!versions.some((version) => REVIEW_VERSIONS.includes(version))) {
    const why = `must include at least one of ${REVIEW_VERSIONS.join(", ")}`;
    causes.push(invalid(field, versions, why));
  }
  return causes;
}
