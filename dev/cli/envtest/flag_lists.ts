import type { ProgramFlags } from "./program_flags.ts";

/** Flags of kube-apiserver. */
export const KUBE_APISERVER_FLAGS: ProgramFlags = {
  program: "kube-apiserver",
  honoured: {
    "etcd-servers": "URL of the etcd that belongs to it",
    "secure-port": "port of HTTPS; 6443 by default",
    "bind-address": "address to listen on; 127.0.0.1 by default",
    "cert-dir": "folder of apiserver.crt and apiserver.key",
    "tls-cert-file": "serving certificate, if not that of --cert-dir",
    "tls-private-key-file": "its private key",
    "client-ca-file": "authorities of client certificates",
    "token-auth-file": "users with tokens, in CSV",
    "anonymous-auth": "only true is supported",
    "authorization-mode":
      "AlwaysAllow (the default), or RBAC with or without Node",
    "service-account-issuer": "issuer of service account tokens",
    "service-account-key-file": "keys that verify these tokens",
    "service-account-signing-key-file": "key that signs these tokens",
    "api-audiences": "audiences of the server",
    "disable-admission-plugins": "admission plug-ins to switch off",
    "enable-admission-plugins": "no effect: all that exist are on by default",
    "feature-gates": "only ShardedListAndWatch has an effect",
    "runtime-config": "no effect: what 1.37 serves by default is served",
  },
  accepted: `
    admission-control advertise-address allow-metric-labels
    allow-metric-labels-manifest audit-log-batch-buffer-size
    audit-log-batch-max-size audit-log-batch-max-wait
    audit-log-batch-throttle-burst audit-log-batch-throttle-qps audit-log-format
    audit-log-maxage audit-log-maxbackup audit-log-maxsize audit-log-mode
    audit-log-path audit-log-truncate-max-batch-size
    audit-log-truncate-max-event-size audit-log-version audit-policy-file
    audit-webhook-batch-buffer-size audit-webhook-batch-max-size
    audit-webhook-batch-max-wait audit-webhook-batch-throttle-burst
    audit-webhook-batch-throttle-qps audit-webhook-config-file
    audit-webhook-initial-backoff audit-webhook-mode
    audit-webhook-truncate-max-batch-size audit-webhook-truncate-max-event-size
    audit-webhook-version authentication-token-webhook-cache-ttl
    authentication-token-webhook-version
    authorization-webhook-cache-authorized-ttl
    authorization-webhook-cache-unauthorized-ttl authorization-webhook-version
    coordinated-leadership-lease-duration coordinated-leadership-renew-deadline
    coordinated-leadership-retry-period cors-allowed-origins debug-socket-path
    default-not-ready-toleration-seconds default-unreachable-toleration-seconds
    delete-collection-workers disabled-metrics egress-selector-config-file
    emulated-version encryption-provider-config endpoint-reconciler-type
    etcd-cafile etcd-certfile etcd-compaction-interval
    etcd-count-metric-poll-period etcd-db-metric-poll-interval
    etcd-healthcheck-timeout etcd-keyfile etcd-prefix etcd-readycheck-timeout
    etcd-servers-overrides event-ttl external-hostname goaway-chance
    http2-max-streams-per-connection kubelet-certificate-authority
    kubelet-client-certificate kubelet-client-key
    kubelet-preferred-address-types kubelet-timeout kubernetes-service-node-port
    lease-reuse-duration-seconds livez-grace-period log-flush-frequency
    log-text-info-buffer-size logging-format max-connection-bytes-per-sec
    max-mutating-requests-inflight max-requests-inflight
    min-compatibility-version min-request-timeout peer-advertise-ip
    peer-advertise-port peer-ca-file proxy-client-cert-file
    proxy-client-key-file request-timeout requestheader-allowed-names
    requestheader-extra-headers-prefix requestheader-group-headers
    requestheader-uid-headers requestheader-username-headers
    service-account-jwks-uri service-account-max-token-expiration
    service-cluster-ip-range service-node-port-range
    show-hidden-metrics-for-version shutdown-delay-duration
    shutdown-watch-termination-grace-period storage-backend
    storage-initialization-timeout storage-media-type
    strict-transport-security-directives tls-cipher-suites tls-curve-preferences
    tls-min-version tracing-config-file v vmodule watch-cache-sizes`,
  switches: `
    aggregator-reject-forwarding-redirect allow-privileged
    audit-log-batch-throttle-enable audit-log-compress
    audit-log-truncate-enabled audit-webhook-batch-throttle-enable
    audit-webhook-truncate-enabled contention-profiling disable-http2-serving
    emulation-forward-compatible enable-aggregator-routing
    enable-bootstrap-token-auth enable-garbage-collector enable-logs-handler
    enable-priority-and-fairness encryption-provider-config-automatic-reload
    log-text-split-stream permit-address-sharing permit-port-sharing profiling
    runtime-config-emulation-forward-compatible
    service-account-extend-token-expiration service-account-lookup
    shutdown-send-retry-after watch-cache`,
  refused: `
    admission-control-config-file authentication-config
    authentication-token-webhook-config-file authorization-config
    authorization-policy-file authorization-webhook-config-file oidc-ca-file
    oidc-client-id oidc-groups-claim oidc-groups-prefix oidc-issuer-url
    oidc-required-claim oidc-signing-algs oidc-username-claim
    oidc-username-prefix requestheader-client-ca-file
    service-account-signing-endpoint tls-sni-cert-key`,
};

/** Flags of etcd. */
export const ETCD_FLAGS: ProgramFlags = {
  program: "etcd",
  honoured: {
    "listen-client-urls": "URL to listen on; http://localhost:2379 by default",
    "data-dir": "folder of the data; default.etcd by default",
  },
  accepted: `
    advertise-client-urls auth-token auth-token-ttl auto-compaction-mode
    auto-compaction-retention backend-batch-interval backend-batch-limit
    backend-bbolt-freelist-type bcrypt-cost bootstrap-defrag-threshold-megabytes
    cipher-suites client-cert-allowed-hostname client-cert-file client-crl-file
    client-key-file compact-hash-check-time compaction-batch-limit
    compaction-sleep-interval corrupt-check-time cors discovery discovery-cacert
    discovery-cert discovery-dial-timeout discovery-endpoints discovery-fallback
    discovery-keepalive-time discovery-keepalive-timeout discovery-key
    discovery-password discovery-proxy discovery-request-timeout discovery-srv
    discovery-srv-name discovery-token discovery-user
    distributed-tracing-address distributed-tracing-instance-id
    distributed-tracing-sampling-rate distributed-tracing-service-name
    downgrade-check-time election-timeout feature-gates grpc-keepalive-interval
    grpc-keepalive-min-time grpc-keepalive-timeout heartbeat-interval
    host-whitelist initial-advertise-peer-urls initial-cluster
    initial-cluster-state initial-cluster-token listen-client-http-urls
    listen-metrics-urls listen-peer-urls log-format log-level log-outputs
    log-rotation-config-json logger max-concurrent-streams max-learners
    max-request-bytes max-snapshots max-txn-ops max-wals metrics name
    peer-cert-allowed-cn peer-cert-allowed-hostname peer-cert-file
    peer-client-cert-file peer-client-key-file peer-crl-file peer-key-file
    peer-trusted-ca-file quota-backend-bytes raft-read-timeout
    raft-write-timeout self-signed-cert-validity snapshot-catchup-entries
    snapshot-count tls-max-version tls-min-version v2-deprecation wal-dir
    warning-apply-duration warning-unary-request-duration
    watch-progress-notify-interval`,
  switches: `
    discovery-insecure-skip-tls-verify discovery-insecure-transport
    enable-distributed-tracing enable-grpc-gateway enable-log-rotation
    enable-pprof force-new-cluster initial-election-tick-advance memory-mlock
    peer-auto-tls peer-client-cert-auth peer-skip-client-san-verification
    pre-vote socket-reuse-address socket-reuse-port strict-reconfig-check
    unsafe-no-fsync`,
  refused: `
    auto-tls cert-file client-cert-auth key-file trusted-ca-file`,
};
