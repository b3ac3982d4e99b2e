import { type Static, type TObject, Type } from 'typebox';

/** A port to listen on; 0: any that is free. */
export const portSetting = (number: number) => Type.Integer({ minimum: 0, maximum: 65_535, default: number });

/** Settings of every process, to be spread into its schema. */
export const processSettings = {
  ROLLCALL_NAMESPACE: Type.Optional(
    Type.String({ minLength: 1, description: 'Namespace of its custom resources; absent: that of the pod' }),
  ),
  ROLLCALL_HOST: Type.Optional(Type.String({ minLength: 1, description: 'Address to listen on; absent: any' })),
  ROLLCALL_ADMIN_PORT: portSetting(9090),
  ROLLCALL_LOG_LEVEL: Type.Enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], { default: 'info' }),
};

/** Settings of every process with an API, to be spread into its schema. */
export const apiSettings = (port: number) => ({
  ...processSettings,
  ROLLCALL_PORT: portSetting(port),
  ROLLCALL_DRAIN_SECONDS: Type.Integer({ minimum: 0, maximum: 20, default: 0 }),
});

export interface ProcessConfig {
  /** Of its custom resources. Undefined: the namespace of the kubeconfig or of the pod. */
  readonly namespace: string | undefined;
  /** Undefined: any. */
  readonly host: string | undefined;
  readonly adminPort: number;
  readonly logLevel: string;
}

export interface ApiConfig extends ProcessConfig {
  readonly port: number;
  /**
   * Between saying that no more traffic should come and closing, at most: as long as proxies need to
   * notice, and clients to leave the connections that they keep.
   */
  readonly drainMs: number;
}

export function processConfig(parsed: Static<TObject<typeof processSettings>>): ProcessConfig {
  return {
    namespace: parsed.ROLLCALL_NAMESPACE,
    host: parsed.ROLLCALL_HOST,
    adminPort: parsed.ROLLCALL_ADMIN_PORT,
    logLevel: parsed.ROLLCALL_LOG_LEVEL,
  };
}

export function apiConfig(parsed: Static<TObject<ReturnType<typeof apiSettings>>>): ApiConfig {
  return {
    ...processConfig(parsed),
    port: parsed.ROLLCALL_PORT,
    drainMs: parsed.ROLLCALL_DRAIN_SECONDS * 1000,
  };
}
