import { runMain } from '@rollcall/platform/process/main.ts';
import { gatewayProcess } from './service.ts';

runMain(gatewayProcess);
