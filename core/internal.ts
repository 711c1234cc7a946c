/**
 * What `@coracle/dev` needs of the operator and no program should use: there is
 * no promise about these names. Any version may change or remove them, without
 * a line in the changelog; `@coracle/dev` takes the version that it was made for.
 *
 * {@linkcode replaceHost} is the seam by which tools replace cluster, clock,
 * random numbers and lifecycle of the operators in their process. The rest are
 * parts of the client, JSON and schemas that the embedded API server shares.
 *
 * @module
 */

export type { KeyPair } from "./admission/certificates.ts";
export {
  createAuthority,
  issueCertificate,
  signRequest,
} from "./admission/certificates.ts";
export {
  childrenOf,
  type Der,
  type DerChild,
  objectIdentifier,
  valuesIn,
} from "./admission/der.ts";
export { definitionRules, policyRule } from "./admission/admission_rules.ts";
export { CERT_MANAGER_DIRECTORY } from "./admission/webhook_options.ts";
export type { Status, StatusCause } from "./api/api_error.ts";
export { scheduleProblem, timeZoneProblem } from "./api/cron_schedule.ts";
export { type CronTimes, cronTimes } from "./api/cron_times.ts";
export { matchesFields, parseFieldSelector } from "./api/field_selector.ts";
export { checkInput } from "./api/input.ts";
export {
  apiVersionOf,
  builtIn,
  checkKind,
  isBuiltIn,
  isResolved,
  kindText,
  parseApiVersion,
  sameKind,
} from "./api/kind.ts";
export {
  type LabelOperator,
  labelRequirement,
  labelRequirements,
  labelSelectorText,
} from "./api/label_selector.ts";
export {
  checkOption,
  checkOptions,
  checkParts,
  nearestName,
  type OptionRules,
  shown,
  typeText,
} from "./api/options.ts";
export {
  inShard,
  type ParsedShardSelector,
  parseShardSelector,
} from "./api/shard_selector.ts";
export { compareVersions } from "./api/version_order.ts";
export { clientSettings } from "./client/client_options.ts";
export { openConnection } from "./client/connection.ts";
export { host, type OperatorHooks, replaceHost } from "./client/host.ts";
export { CHANNEL_V4, CHANNEL_V5 } from "./client/pods/channel_stream.ts";
export { readBody } from "./client/response.ts";
export type { NamedWebhookHost } from "./client/webhook_host.ts";
export {
  ChunkQueue,
  textOf,
  WholeBody,
} from "./client/transport/chunk_queue.ts";
export { openHttpTransport } from "./client/transport/open_transport.ts";
export type { HttpTransport } from "./client/transport/transport.ts";
export { conversionHandler } from "./conversion/conversion_review.ts";
export { convertObject, KEPT_ANNOTATION } from "./conversion/convert_object.ts";
export { failureOf } from "./conversion/unconverted.ts";
export { migrateStorage } from "./conversion/migrate_storage.ts";
export type { Controller, ReplayedParts } from "./controller/controller.ts";
export { stateAnnotation } from "./controller/job/job_options.ts";
export {
  decodeEntry,
  DISCOVERY,
  GAP,
  isDiscovery,
  NO_BODY,
  NOT_KEPT,
  OBJECT,
  type PartIdentity,
  type RecordedError,
  recordedErrorText,
  type RecordedRead,
  type RecordedStep,
  RECORDING,
  RUN,
  type RunRecord,
  unpackRun,
} from "./controller/record/recording_format.ts";
export { liveName, needlessName } from "./controller/record/decisions.ts";
export {
  blanked,
  hasHidden,
  HIDDEN,
  isSameShown,
  isSecretPath,
  isSecrets,
  secretDigests,
  SecretTexts,
} from "./controller/record/secrets.ts";
export {
  type AbortCause,
  Run,
  type RunResult,
  wasCutShort,
} from "./controller/run/run.ts";
export { textHash } from "./controller/run/apply_memory.ts";
export { causeText } from "./controller/cause.ts";
export {
  findFrames,
  readHead,
  readRecords,
  recordsOf,
  SnapshotRefusal,
} from "./cache/snapshot/snapshot_format.ts";
export { loadModule, modulesLoaded, nextTurn, sleep } from "./clock.ts";
export {
  CRD_KIND,
  type CrdCondition,
  type CrdNames,
  type CrdObject,
} from "./crd/crd_object.ts";
export { applyCrd } from "./crd/install_crd.ts";
export {
  isDefinedKind,
  type PrinterColumn,
  type ValidationRule,
} from "./crd/kind_definition.ts";
export { kindNames } from "./crd/kind_names.ts";
export { errorMessage, messageWithCause, textWithCause } from "./error_text.ts";
export { LineSplitter } from "./json/line_splitter.ts";
export { mutableCopy } from "./json/prune.ts";
export { leveledLogger, stackText } from "./logger.ts";
export { closeServer, listenOn, nodeHttp, nodeHttps } from "./node_http.ts";
export { parseManifests } from "./config/yaml_text.ts";
export { Lease, LEASE_VERBS } from "./operator/lease_lock.ts";
export {
  logsUnawaited,
  unawaitedRequest,
} from "./operator/unawaited_requests.ts";
export {
  JsonPatchError,
  jsonPointer,
  pointerSteps,
} from "./patch/json_patch.ts";
export {
  differences,
  isJsonObject,
  type JsonDifference,
  jsonEquals,
  type JsonObject,
  ownValue,
  setOwn,
} from "./patch/json_value.ts";
export { applyMergePatch } from "./patch/merge_patch.ts";
export type { OpenApiSchema } from "./patch/schema.ts";
export { compareTexts } from "./text_order.ts";
