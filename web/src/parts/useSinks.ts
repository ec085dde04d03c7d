// Which sinks the service has, for the satellites of the telemetry node.
import { create } from "zustand";
import { api, type Schemas } from "../api/client";

interface Sinks { sinks: Schemas["SinkOut"][]; load(): Promise<void> }
export const useSinks = create<Sinks>((set) => ({
  sinks: [],
  load: async () => { set({ sinks: await api.sinks() }); },
}));
export const changed = (sinks: Schemas["SinkOut"][]): void => useSinks.setState({ sinks });
