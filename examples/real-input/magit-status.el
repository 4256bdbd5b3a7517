;; What Magit does for its status view, without a terminal: REPO=DIRECTORY emacs --batch -l magit-status.el
(require 'package)
(package-initialize)
(require 'magit)
(setq default-directory (file-name-as-directory (getenv "REPO")))
(magit-status-setup-buffer default-directory)
(princ (format "%d lines\n" (count-lines (point-min) (point-max))))
