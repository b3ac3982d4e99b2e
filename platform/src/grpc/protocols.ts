import { fileURLToPath } from 'node:url';
import type { PackageDefinition, ServiceDefinition } from '@grpc/proto-loader';

/** Where the protocol buffers are that several processes speak. */
export const protocolDirectory = fileURLToPath(new URL('../../proto', import.meta.url));

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
