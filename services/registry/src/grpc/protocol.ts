import { fileURLToPath } from 'node:url';
import { loadSync, type PackageDefinition } from '@grpc/proto-loader';
import { protocolDirectory } from '@rollcall/platform/grpc/protocols.ts';

/** The registry's own service. */
export const REGISTRY = 'rollcall.registry.v1.Registry';

/** The protocol buffers of everything that the server serves. */
export function loadProtocol(): PackageDefinition {
  return loadSync(['rollcall/registry/v1/registry.proto', 'grpc/health/v1/health.proto'], {
    includeDirs: [fileURLToPath(new URL('../../proto', import.meta.url)), protocolDirectory],
    longs: Number,
    enums: String,
    defaults: true,
    arrays: true,
  });
}
