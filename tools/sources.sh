# Sourced. `source_files` prints the files that a commit would have, each name ended by a zero byte. `copy_sources_to FOLDER`
# copies these files into FOLDER.

source_files() { # tracked files and new ones, without deleted ones
    git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
        [[ ! -e $file ]] || printf '%s\0' "$file"
    done
}

copy_sources_to() {
    mkdir -p "$1"
    source_files | tar -c --null --files-from=- | tar -x -C "$1"
}
