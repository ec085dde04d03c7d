import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The bundle goes into the Python package, which ships it. `npm run dev` expects a studio on its usual port.
export default defineConfig({
  plugins: [react()],
  build: { outDir: "../src/treadle/server/static", emptyOutDir: true, target: "es2022", minify: "terser", terserOptions: { compress: { passes: 2 }, format: { comments: false } }, assetsInlineLimit: 0, chunkSizeWarningLimit: 800 },
  server: { proxy: { "/api": "http://127.0.0.1:8765" } },
});
