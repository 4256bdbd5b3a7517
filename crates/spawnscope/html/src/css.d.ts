// Styles are bundled as a file of their own.
declare module "*.css";
