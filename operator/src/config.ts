import { type Environment, parseConfig } from '@rollcall/platform/config.ts';
import { type Static, Type } from 'typebox';

const schema = Type.Object({
  ROLLCALL_NAMESPACE: Type.Optional(Type.String({ minLength: 1, description: 'Namespace of the custom resources' })),
  ROLLCALL_HOST: Type.String({ default: '0.0.0.0', description: 'Address of the admin port' }),
  ROLLCALL_ADMIN_PORT: Type.Integer({ minimum: 0, maximum: 65_535, default: 9090 }),
  ROLLCALL_LOG_LEVEL: Type.Enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], { default: 'info' }),
  ROLLCALL_IMPORT: Type.Boolean({ default: true, description: 'Whether annotated Services are registered' }),
  ROLLCALL_IMPORT_NAMESPACES: Type.String({ default: '', description: 'Separated by commas; absent: all' }),
  ROLLCALL_IMPORT_TTL_SECONDS: Type.Integer({ minimum: 1, maximum: 86_400, default: 60 }),
  ROLLCALL_RETENTION_SECONDS: Type.Integer({ minimum: 0, maximum: 30 * 86_400, default: 3600 }),
  ROLLCALL_CONCURRENCY: Type.Integer({ minimum: 1, maximum: 500, default: 50 }),
  // No Lease of a registration can have this name: theirs have no dot, or end in 16 hexadecimal digits.
  ROLLCALL_LEADER_LEASE: Type.String({ minLength: 1, default: 'operator.rollcall.dev' }),
});

interface ImportConfig {
  /** None: Services of all namespaces. */
  readonly namespaces: readonly string[];
  /** How long a Service may be without a ready endpoint. */
  readonly ttlMs: number;
}

/** Settings of the operator process. */
export interface OperatorConfig {
  /** Undefined: the namespace of the kubeconfig or of the pod. */
  readonly namespace: string | undefined;
  readonly host: string;
  readonly adminPort: number;
  readonly logLevel: string;
  /** Undefined: Services are not imported. */
  readonly import: ImportConfig | undefined;
  /** How long an Expired registration is kept. */
  readonly retentionMs: number;
  /** How many registrations are worked on at once, and so the most requests to the API server under way. */
  readonly concurrency: number;
  /** Name of the Lease that the replicas compete for. */
  readonly leaderLease: string;
}

/** @throws ConfigError naming every faulty variable. */
export function operatorConfig(environment: Environment): OperatorConfig {
  const parsed: Static<typeof schema> = parseConfig(schema, environment);
  const named = parsed.ROLLCALL_IMPORT_NAMESPACES.split(',').map((name) => name.trim());
  const importing = {
    namespaces: [...new Set(named.filter((name) => name !== ''))],
    ttlMs: parsed.ROLLCALL_IMPORT_TTL_SECONDS * 1000,
  };
  return {
    namespace: parsed.ROLLCALL_NAMESPACE,
    host: parsed.ROLLCALL_HOST,
    adminPort: parsed.ROLLCALL_ADMIN_PORT,
    logLevel: parsed.ROLLCALL_LOG_LEVEL,
    import: parsed.ROLLCALL_IMPORT ? importing : undefined,
    retentionMs: parsed.ROLLCALL_RETENTION_SECONDS * 1000,
    concurrency: parsed.ROLLCALL_CONCURRENCY,
    leaderLease: parsed.ROLLCALL_LEADER_LEASE,
  };
}
