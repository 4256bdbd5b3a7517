// esbuild bundles the styles into a separate file.
declare module "*.css";
