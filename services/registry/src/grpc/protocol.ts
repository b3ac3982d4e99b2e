import { fileURLToPath } from 'node:url';
import { loadSync, type PackageDefinition, type ServiceDefinition } from '@grpc/proto-loader';
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

/** @throws when the protocol has no service of that name. */
export function serviceDefinition(protocol: PackageDefinition, name: string): ServiceDefinition {
  const definition = protocol[name];
  if (definition === undefined || !isService(definition)) throw new Error(`The protocol has no service ${name}`);
  return definition;
}

/** Messages and enums have a format; services have methods only. */
function isService(definition: PackageDefinition[string]): definition is ServiceDefinition {
  return !('format' in definition && typeof definition.format === 'string');
}
